"""From an observation of the real system to the inputs that can have led to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.kernels import Kernel
from scipy.stats import binned_statistic_2d

from gpflow_dwp.base import Array
from gpflow_dwp.data.columns import Columns
from gpflow_dwp.emulation.emulator import as_emulator, sobol_points
from gpflow_dwp.emulation.target import Target
from gpflow_dwp.optional import import_optional
from gpflow_dwp.random import as_seed, split_seed
from gpflow_dwp.validation import check_integers, check_positive

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
# Of sequential Monte Carlo: draws for each chain, fewer where each is costly, and steps of a stage.
_DRAWS, _DRAWS_WITH_SETTINGS, _MOST_STEPS = 128, 8, 12

Implausible = Callable[[Array], Array]
State = tuple[Array, Array]


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
    mode (Vernon, Goldstein and Bower, "Galaxy formation: a Bayesian uncertainty analysis", 2010).
    With a covariance C it is :math:`\sqrt{(z - \mu)^\top (\Sigma + C)^{-1} (z - \mu)}` for all of
    Q outputs, which is held against a quantile of the χ distribution of Q degrees of freedom.

    :param model: A fitted estimator, a chain or a trained model of Q outputs.
    :param x: Inputs, [N, D].
    :param observation: z, a number or [Q]; NaN where nothing was observed.
    :param observation_std: Standard deviation of the observation's error, a number or [Q].
    :param discrepancy_std: That of the simulator's discrepancy, a number or [Q].
    :param covariance: C, of both errors between outputs, beside these deviations, [Q, Q].
    :param rank: Which of the outputs' values: 2 for the second largest, if one is emulated badly.
    :return: [N].
    :raises ValueError: If the model is not fitted, or the observation has another length.
    """
    fixed = observation, observation_std, discrepancy_std, covariance
    target = Target.of(as_emulator(model), *fixed)
    check_integers(rank=rank)
    errors, variance = target.errors_at(target.emulator.points("x", x))
    most = errors.shape[1] if target.covariance is None else 1
    if rank > most:
        raise ValueError(f"rank must be at most {most} (1 with a covariance), got {rank}.")
    if target.covariance is not None:
        joint = target.covariance + variance[:, :, None] * np.eye(variance.shape[1])
        solved = np.linalg.solve(joint, errors[:, :, None])[:, :, 0]
        return np.sqrt(np.sum(errors * solved, axis=1))
    implausible = np.abs(errors) / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    return np.asarray(np.sort(implausible, axis=1)[:, -rank])


def sample_plausible(
    implausible: Implausible,
    bounds: Sequence[Any] | Array,
    num_points: int = 500,
    *,
    cutoff: float = 3.0,
    seed: int = 0,
) -> PlausibleInputs:
    """Draw inputs that are not ruled out, however few these are.

    From points within bounds a quarter at a time is kept, of the least implausibility, and made
    many again by slice sampling along differences of two of them (subset simulation: Au and Beck,
    "Estimation of small failure probabilities in high dimensions by subset simulation", 2001). Runs
    of the next wave are ``suggest(model, bounds, batch, candidates=points)``.

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
    limits, rng = Columns.of_numbers(range(len(bounds))).limits(bounds), np.random.default_rng(seed)
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
            points, values = _slice_step(implausible, (points, values), level, limits, rng)
        if level == cutoff:
            return PlausibleInputs(points, share)
    return PlausibleInputs(points[:0], 0.0)


def plot_implausibility(
    implausible: Implausible,
    bounds: Sequence[Any] | Array,
    *,
    cutoff: float = 3.0,
    names: list[str] | None = None,
    num_points: int = 2**14,
    resolution: int = 16,
    seed: int = 0,
) -> Figure:
    """Show what is left for each pair of inputs, whatever all others are.

    Below the diagonal is the least implausibility in a cell, above it the share that is left.

    :param implausible: As for :func:`sample_plausible`.
    :param bounds: Lower and upper bound of each input, [D, 2], of at least two.
    :param cutoff: Implausibility above which inputs are ruled out.
    :param names: Of the inputs; None for x1 to xD.
    :param num_points: Points within bounds.
    :param resolution: Cells along each input.
    :param seed: Of the points.
    """
    limits = Columns.of_numbers(range(len(bounds))).limits(bounds)
    points = sobol_points(limits, num_points, seed)
    values = implausible(points)
    size, names = len(limits), names or [f"x{each + 1}" for each in range(len(limits))]
    shape, room = (2.2 * size + 1.5, 2.2 * size), import_optional("matplotlib.figure", "cli")
    figure = room.Figure(shape, layout="constrained")
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
    for below, label in {True: "minimum implausibility", False: "optical depth"}.items():
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
    settings: npt.ArrayLike | None = None,
    discrepancy: Kernel | None = None,
    num_draws: int = 500,
    num_burnin: int = 300,
    num_chains: int = 4,
    seed: int = 0,
) -> InputPosterior:
    r"""Draw the inputs given an observation of the real system, by TFP's no-U-turn sampler.

    .. math:: z \sim \mathcal N(\mu(x), \Sigma(x) + \sigma_\text{obs}^2 + \sigma_\text{dis}^2 + C)

    with the emulator's mean and variance. Beyond its runs an emulator does not know much: priors
    should end there.

    Some inputs may be known where each of N observations was made, as ``settings``, and are found
    for all of them alike. Then the emulator's covariance between these counts, and a discrepancy
    may be a Gaussian process of what is known (Kennedy and O'Hagan, "Bayesian calibration of
    computer models", 2001), whose kernel has the parameters that it is given with.

    :param model: As for :func:`implausibility`, like the errors; with settings of one output.
    :param prior: A TFP distribution of the inputs to be found, in their order, of events [D].
    :param settings: Inputs of each observation, [N, D], NaN in the columns that are to be found.
    :param discrepancy: GPflow's kernel of the known columns, in raw units of these and of outputs.
    :param num_draws: Draws of each chain.
    :param num_burnin: Steps before these, in which the step size is adapted.
    :param num_chains: Chains, which start at draws of the prior that the observation suggests.
    :param seed: Of all draws.
    :raises ValueError: If the model is not fitted, or observation or prior have another length.
    """
    emulator = as_emulator(model)
    if levels := [*emulator.columns.levels]:
        raise ValueError(f"model must take numbers alone, got categories in {levels}.")
    fixed = observation, observation_std, discrepancy_std, covariance
    target = Target.of(emulator, *fixed, settings=settings, discrepancy=discrepancy)
    check_integers(num_draws=num_draws, num_burnin=num_burnin)
    check_integers(at_least=2, num_chains=num_chains)
    size = target.num_unknown
    if list(prior.event_shape) != [size] or list(prior.batch_shape):
        raise ValueError(f"prior must be a distribution of events [{size}], got {prior!r}.")
    bijector, starts = _coordinates(target, prior, num_chains, seed)

    def log_density(x: tf.Tensor) -> tf.Tensor:
        is_finite = tf.math.is_finite(x)
        at = tf.where(is_finite, x, starts)
        density = prior.log_prob(at) + target.log_density(at)
        return tf.where(tf.reduce_all(is_finite, axis=-1), density, -np.inf)

    @tf.function(autograph=False)
    def sample() -> tf.Tensor:
        kernel = tfp.mcmc.NoUTurnSampler(log_density, 0.3, max_tree_depth=6)
        kernel = tfp.mcmc.TransformedTransitionKernel(kernel, bijector)
        kernel = tfp.mcmc.DualAveragingStepSizeAdaptation(kernel, int(0.8 * num_burnin))
        given = {"num_burnin_steps": num_burnin, "trace_fn": None, "seed": as_seed(seed)}
        return tfp.mcmc.sample_chain(num_draws, starts, kernel=kernel, **given)

    draws = sample()
    r_hat = tfp.mcmc.potential_scale_reduction(draws)
    sizes = tfp.mcmc.effective_sample_size(draws, cross_chain_dims=1)
    return InputPosterior(np.swapaxes(draws.numpy(), 0, 1), r_hat.numpy(), sizes.numpy())


def _coordinates(target: Target, prior: Any, num_chains: int, seed: int) -> tuple[Any, tf.Tensor]:
    """Coordinates in which the posterior is about round, and where chains start, [num_chains, D].

    Found by Del Moral, Doucet and Jasra, "Sequential Monte Carlo samplers", 2006.
    """
    bijector = prior.experimental_default_event_space_bijector()
    free = tfp.distributions.TransformedDistribution(prior, tfp.bijectors.Invert(bijector))
    num_draws = num_chains * (_DRAWS if target.settings is None else _DRAWS_WITH_SETTINGS)

    @tf.function(autograph=False)
    def sample() -> tf.Tensor:
        first, rest = split_seed(as_seed(seed), 2)
        return tfp.experimental.mcmc.sample_sequential_monte_carlo(
            free.log_prob,
            lambda x: target.log_density(bijector.forward(x)),
            free.sample(num_draws, seed=first),
            max_num_steps=_MOST_STEPS,
            seed=rest,
        )[1]

    x = sample().numpy()
    root = np.linalg.cholesky(np.cov(x.T).reshape(2 * x.shape[1:]))
    steps = tfp.bijectors.Shift(x.mean(axis=0)), tfp.bijectors.ScaleMatvecTriL(root)
    return tfp.bijectors.Chain([bijector, *steps]), bijector.forward(x[:: len(x) // num_chains])


def _slice_step(
    implausible: Implausible, state: State, level: float, limits: Array, rng: np.random.Generator
) -> State:
    """Move each point along a line, uniformly among what is no worse than a level there."""
    points, values = (part.copy() for part in state)
    count = len(points)
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
    return points, values
