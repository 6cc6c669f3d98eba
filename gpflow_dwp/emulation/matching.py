"""From an observation of the real system to the inputs that can have led to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp
from scipy.stats import binned_statistic_2d

from gpflow_dwp.base import Array
from gpflow_dwp.data.columns import Columns
from gpflow_dwp.emulation.emulator import Emulator, as_emulator, sobol_points
from gpflow_dwp.optional import import_optional
from gpflow_dwp.random import as_seed, split_seed
from gpflow_dwp.validation import as_real_array, check_integers, check_positive

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "InputPosterior",
    "PlausibleInputs",
    "implausibility",
    "input_posterior",
    "plot_implausibility",
    "sample_plausible",
]

# Of a sampler by levels: what each keeps, and steps of slice sampling in between.
_KEPT, _STEPS, _SHRINKAGES, _MOST_LEVELS = 0.25, 8, 12, 60


class PlausibleInputs(NamedTuple):
    """What is left of the inputs.

    :param points: Inputs that are not ruled out, about uniform among such, [N, D]; none if all are.
    :param share: What these are of all inputs within bounds, about.
    """

    points: Array
    share: float


class InputPosterior(NamedTuple):
    """Draws of the inputs given an observation; ArviZ takes ``{"x": draws}``.

    :param draws: [chains, draws, D].
    :param r_hat: Potential scale reduction of each input, [D]: near 1 where chains agree.
    :param effective_size: Effective number of draws, of all chains together, [D].
    """

    draws: Array
    r_hat: Array
    effective_size: Array


def implausibility(
    model: Any,
    x: npt.ArrayLike,
    observation: npt.ArrayLike,
    *,
    observation_std: npt.ArrayLike = 0.0,
    discrepancy_std: npt.ArrayLike = 0.0,
    covariance: npt.ArrayLike | None = None,
    rank: int = 1,
) -> Array:
    r"""Return how implausible inputs are, given what was observed of the real system.

    .. math:: I(x) = \frac{|z - \mu(x)|}
              {\sqrt{\sigma^2(x) + \sigma_\text{obs}^2 + \sigma_\text{dis}^2}}

    with the emulator's mean and variance, the nugget included, and the largest one over outputs.
    Inputs with I above 3 are commonly ruled out, by Pukelsheim's rule for distributions with one
    mode (Vernon, Goldstein and Bower, "Galaxy formation: a Bayesian uncertainty analysis", 2010);
    in waves, with new runs among those that are left. With a covariance C it is one number for all
    outputs, :math:`\sqrt{(z - \mu)^\top (\Sigma + C)^{-1} (z - \mu)}`, which is held against a
    quantile of the χ distribution of as many degrees of freedom as outputs.

    :param model: A fitted estimator, a chain or a trained model of Q outputs.
    :param x: Inputs, [N, D].
    :param observation: z, a number or [Q]; NaN where nothing was observed.
    :param observation_std: Standard deviation of the observation's error, a number or [Q].
    :param discrepancy_std: That of the simulator's discrepancy, a number or [Q].
    :param covariance: C, of both errors between outputs, beside these deviations, [Q, Q].
    :param rank: Which of the outputs' values: 2 for the second largest, which one output that is
        emulated badly does not decide.
    :return: [N].
    :raises ValueError: If the model is not fitted, or the observation has another length.
    """
    target = _Target.of(model, observation, observation_std, discrepancy_std, covariance)
    check_integers(rank=rank)
    errors, variance = target.errors_at(target.emulator.points("x", x))
    if target.covariance is not None:
        if rank != 1:
            raise ValueError(f"rank must be 1 with a covariance of all outputs, got {rank}.")
        joint = target.covariance + variance[:, :, None] * np.eye(variance.shape[1])
        solved = np.linalg.solve(joint, errors[:, :, None])[:, :, 0]
        return np.sqrt(np.sum(errors * solved, axis=1))
    if rank > errors.shape[1]:
        raise ValueError(f"rank must be at most {errors.shape[1]}, what is observed, got {rank}.")
    implausible = np.abs(errors) / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    return np.asarray(np.sort(implausible, axis=1)[:, -rank])


def sample_plausible(
    implausible: Callable[[Array], Array],
    bounds: Sequence[Any] | Array,
    num_points: int = 500,
    *,
    cutoff: float = 3.0,
    seed: int = 0,
) -> PlausibleInputs:
    """Draw inputs that are not ruled out, however few these are.

    From points within bounds a quarter at a time is kept, of the least implausibility, and made
    many again by slice sampling along differences of two of them (subset simulation: Au and Beck,
    "Estimation of small failure probabilities in high dimensions by subset simulation", 2001). A
    share of 0.1% takes five such levels. Candidates for the next wave's runs are
    ``suggest(model, bounds, batch, candidates=points)``.

    :param implausible: From inputs [N, D] to their implausibility, [N]: a function that calls
        :func:`implausibility`, of several waves the largest.
    :param bounds: Lower and upper bound of each input, [D, 2].
    :param num_points: Number of points, N.
    :param cutoff: Implausibility above which inputs are ruled out.
    :param seed: Of the draws.
    :raises ValueError: If the bounds are no bounds.
    """
    check_integers(at_least=8, num_points=num_points)
    check_positive(cutoff=cutoff)
    limits, rng = Columns.of_numbers(len(bounds)).limits(bounds), np.random.default_rng(seed)
    points = sobol_points(limits, num_points, seed)
    values, share = implausible(points), 1.0
    for _ in range(_MOST_LEVELS):
        level = max(cutoff, float(np.quantile(values, _KEPT)))
        kept = values < level if level > cutoff else values <= cutoff
        if not kept.any() or np.ptp(values[kept]) == 0.0 and level > cutoff:
            break
        share *= kept.mean()
        chosen = rng.choice(np.flatnonzero(kept), num_points)
        points, values = points[chosen], values[chosen]
        for _ in range(_STEPS):
            points, values = _slice_step(implausible, points, values, level, limits, rng)
        if level == cutoff:
            return PlausibleInputs(points, share)
    return PlausibleInputs(points[:0], 0.0)


def plot_implausibility(
    implausible: Callable[[Array], Array],
    bounds: Sequence[Any] | Array,
    *,
    cutoff: float = 3.0,
    names: list[str] | None = None,
    num_points: int = 2**14,
    resolution: int = 16,
    seed: int = 0,
) -> Figure:
    """Show what is left for each pair of inputs, whatever all others are.

    Below the diagonal is the least implausibility of points in a cell, and above it their share
    that is not ruled out, the optical depth.

    :param implausible: As for :func:`sample_plausible`.
    :param bounds: Lower and upper bound of each input, [D, 2], of at least two.
    :param cutoff: Implausibility above which inputs are ruled out.
    :param names: Of the inputs; None for x1 to xD.
    :param num_points: Points within bounds.
    :param resolution: Cells along each input.
    :param seed: Of the points.
    """
    limits = Columns.of_numbers(len(bounds)).limits(bounds)
    points = sobol_points(limits, num_points, seed)
    values = implausible(points)
    size, names = len(limits), names or [f"x{each + 1}" for each in range(len(limits))]
    pyplot = import_optional("matplotlib.figure", "cli")
    figure = pyplot.Figure((2.2 * size + 1.5, 2.2 * size), layout="constrained")
    panels = figure.subplots(size, size, squeeze=False)
    images: dict[bool, Any] = {}
    for row, column in np.ndindex(size, size):
        axes, below = panels[row, column], row > column
        if row == column:
            axes.text(0.5, 0.5, names[row], ha="center", va="center", transform=axes.transAxes)
            axes.set_axis_off()
            continue
        at, both = points[:, [row, column]].T, limits[[row, column]]
        statistic, of_points = ("min", values) if below else ("mean", values <= cutoff)
        shown = binned_statistic_2d(*at, of_points, statistic, resolution, both).statistic
        colours: Any = {"vmax": 2.0 * cutoff, "cmap": "RdYlGn_r"} if below else {}
        extent = (*limits[column], *limits[row])
        colours |= {"vmin": 0.0, "origin": "lower", "aspect": "auto"}
        images[below] = axes.imshow(shown, extent=extent, **colours)
    for below, label in ((True, "minimum implausibility"), (False, "optical depth")):
        figure.colorbar(images[below], ax=panels, label=label)
    return figure


def input_posterior(
    model: Any,
    observation: npt.ArrayLike,
    prior: Any,
    *,
    observation_std: npt.ArrayLike = 0.0,
    discrepancy_std: npt.ArrayLike = 0.0,
    covariance: npt.ArrayLike | None = None,
    num_draws: int = 500,
    num_burnin: int = 300,
    num_chains: int = 4,
    seed: int = 0,
) -> InputPosterior:
    r"""Draw the inputs given an observation of the real system, by TFP's no-U-turn sampler.

    .. math:: z \sim \mathcal N(\mu(x), \Sigma(x) + \sigma_\text{obs}^2 + \sigma_\text{dis}^2 + C)

    with the emulator's mean and variance (Kennedy and O'Hagan, "Bayesian calibration of computer
    models", 2001, with a discrepancy that is a constant's). Beyond its runs an emulator does not
    know much: priors should end there.

    :param model: As for :func:`implausibility`, like the observation and its errors.
    :param prior: A TFP distribution of the inputs, of events [D], in raw units.
    :param num_draws: Draws of each chain.
    :param num_burnin: Steps before these, in which the step size is adapted.
    :param num_chains: Chains, which start at draws from the prior.
    :param seed: Of all draws.
    :raises ValueError: If the model is not fitted, or observation or prior have another length.
    """
    target = _Target.of(model, observation, observation_std, discrepancy_std, covariance)
    check_integers(num_draws=num_draws, num_burnin=num_burnin)
    check_integers(at_least=2, num_chains=num_chains)
    size, columns = target.emulator.num_inputs, target.emulator.columns
    if columns.levels:
        raise ValueError(f"model must take numbers alone, got categories in {[*columns.levels]}.")
    if list(prior.event_shape) != [size] or list(prior.batch_shape):
        raise ValueError(f"prior must be a distribution of events [{size}], got {prior!r}.")

    def log_density(x: tf.Tensor) -> tf.Tensor:
        return prior.log_prob(x) + target.log_density(x)

    @tf.function(autograph=False)
    def sample() -> tf.Tensor:
        first, rest = split_seed(as_seed(seed), 2)
        kernel = tfp.mcmc.TransformedTransitionKernel(
            tfp.mcmc.NoUTurnSampler(log_density, 0.1, max_tree_depth=6),
            prior.experimental_default_event_space_bijector(),
        )
        return tfp.mcmc.sample_chain(
            num_draws,
            prior.sample(num_chains, seed=first),
            kernel=tfp.mcmc.DualAveragingStepSizeAdaptation(kernel, int(0.8 * num_burnin)),
            num_burnin_steps=num_burnin,
            trace_fn=None,
            seed=rest,
        )

    draws = sample()
    r_hat = tfp.mcmc.potential_scale_reduction(draws)
    sizes = tfp.mcmc.effective_sample_size(draws, cross_chain_dims=1)
    return InputPosterior(np.swapaxes(draws.numpy(), 0, 1), r_hat.numpy(), sizes.numpy())


class _Target(NamedTuple):
    """What was observed, of the outputs that were.

    :param emulator: What predicts.
    :param observed: Indices of these outputs among those that vary.
    :param fixed: What is added to the emulator's variance, [P].
    """

    emulator: Emulator
    z: Array
    observed: npt.NDArray[np.int64]
    fixed: Array
    covariance: Array | None

    @classmethod
    def of(
        cls,
        model: Any,
        observation: npt.ArrayLike,
        observation_std: npt.ArrayLike,
        discrepancy_std: npt.ArrayLike,
        covariance: npt.ArrayLike | None,
    ) -> _Target:
        emulator = as_emulator(model)
        z = np.atleast_1d(as_real_array("observation", observation, may_miss=True))
        num_outputs = emulator.shaped(np.zeros((1, emulator.num_outputs))).size
        if z.shape != (num_outputs,) or np.isnan(z).all() or np.isinf(z).any():
            raise ValueError(
                f"observation must be {num_outputs} finite numbers, or NaN, got {observation!r}."
            )
        fixed = np.square(observation_std) + np.square(discrepancy_std) + np.zeros_like(z)
        observed = np.flatnonzero(~np.isnan(z))
        joint = None if covariance is None else as_real_array("covariance", covariance)
        if joint is not None:
            if joint.shape != (num_outputs, num_outputs):
                expected = [num_outputs, num_outputs]
                raise ValueError(f"covariance must be {expected}, got {list(joint.shape)}.")
            joint = joint[np.ix_(observed, observed)]
            least = -1e-9 * np.max(joint)
            if not np.allclose(joint, joint.T) or np.linalg.eigvalsh(joint)[0] < least:
                raise ValueError("covariance must be symmetric and positive semi-definite.")
        return cls(emulator, z[observed], observed, fixed[observed], joint)

    def errors_at(self, x: Array) -> tuple[Array, Array]:
        """Observation less mean, and variance without the covariance, [N, P] each."""
        mean, variance = (np.asarray(part) for part in self.emulator.moments(x))
        mean = self.emulator.shaped(mean, are_outputs=True).reshape(len(x), -1)
        variance = self.emulator.shaped(variance).reshape(len(x), -1)
        return self.z - mean[:, self.observed], variance[:, self.observed] + self.fixed

    def log_density(self, x: tf.Tensor) -> tf.Tensor:
        """Of the observation at inputs [N, D], up to a constant, differentiable, [N]."""
        constants = getattr(self.emulator.estimator, "_constants", np.full(len(self.z), np.nan))
        varies = np.isnan(constants)
        seen, columns = varies[self.observed], (np.cumsum(varies) - 1)[self.observed]
        moments = self.emulator.moments(x)
        mean, variance = (tf.gather(part, columns[seen], axis=1) for part in moments)
        joint = tf.linalg.diag(variance + self.fixed[seen])
        if self.covariance is not None:
            joint += self.covariance[np.ix_(seen, seen)]
        tril = tf.linalg.cholesky(joint)
        return tfp.distributions.MultivariateNormalTriL(mean, tril).log_prob(self.z[seen])


def _slice_step(
    implausible: Callable[[Array], Array],
    points: Array,
    values: Array,
    level: float,
    limits: Array,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Move each point along a line, uniformly among what is no worse than a level there."""
    points, values, count = points.copy(), values.copy(), len(points)
    one, other = rng.integers(0, count, (2, count))
    spread = 0.1 * points.std(axis=0) * rng.standard_normal(points.shape)
    direction = 2.0 * (points[one] - points[other] + spread)
    high = rng.random(count)
    low, moving = high - 1.0, np.arange(count)
    for _ in range(_SHRINKAGES):
        step = rng.uniform(low[moving], high[moving])
        tried = points[moving] + step[:, None] * direction[moving]
        inside = ((limits[:, 0] <= tried) & (tried <= limits[:, 1])).all(axis=1)
        found = np.full(len(moving), np.inf)
        if inside.any():
            found[inside] = implausible(tried[inside])
        hit = found <= level
        points[moving[hit]], values[moving[hit]] = tried[hit], found[hit]
        low[moving[step < 0.0]], high[moving[step >= 0.0]] = step[step < 0.0], step[step >= 0.0]
        moving = moving[~hit]
        if not len(moving):
            break
    return points, values
