"""How outputs depend on inputs: gradients, main effects, Sobol indices and shares of variance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.stats
import tensorflow as tf
from gpflow.likelihoods import Gaussian

from gpflow_dwp.base import Array
from gpflow_dwp.emulation.emulator import Emulator, as_emulator, sobol_points
from gpflow_dwp.evaluation.variance_shares import VarianceShares, variance_shares
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models import FunctionDraws
from gpflow_dwp.validation import check_integers

__all__ = ["MainEffects", "SobolIndices", "gradient", "main_effects", "sobol_indices"]

# Independent randomisations of the points, so that their indices tell the error of integration.
_GROUPS = 8
# Random waves of each function, and values of them that may be there at a time.
_WAVES, _BLOCK = 500, 2**23
_TAILS = (0.025, 0.975)


class SobolIndices(NamedTuple):
    """Indices of D inputs; the axis of Q outputs is left out as in the runs.

    :param first: First-order indices of the mean, [D, Q].
    :param total: Total indices of the mean, [D, Q].
    :param first_interval: 95% intervals, [2, D, Q].
    :param total_interval: [2, D, Q].
    """

    first: Array
    total: Array
    first_interval: Array
    total_interval: Array


class MainEffects(NamedTuple):
    """The output by each input alone; the axis of Q outputs is left out as in the runs.

    :param points: Values of each input, [D, K]; of a category the indices of its levels.
    :param mean: Expectation over the other inputs, [D, K, Q].
    :param interval: 95% intervals, [2, D, K, Q].
    :param shares: What each input has of the variance, of a single layer whose kernel is a sum.
    """

    points: Array
    mean: Array
    interval: Array
    shares: VarianceShares | None = None


def gradient(model: Any, x: npt.ArrayLike) -> tuple[Array, Array]:
    """Differentiate the predicted mean and standard deviation by the inputs.

    They are those of the predictions themselves, noise or nugget included, whose random numbers are
    the same at all points.

    :param model: A fitted estimator or a trained model.
    :param x: Inputs, [N, D].
    :return: Slopes of both, [N, D, Q] each, or [N, D] as the runs; NaN by categories.
    :raises ValueError: If the model is not fitted, or ``x`` are no inputs of it.
    """
    emulator = as_emulator(model)
    X = tf.constant(emulator.points("x", x))
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(X)
        mean, variance = emulator.moments(X)
        # Rows do not depend on each other, so that a sum's gradient is that of each.
        columns = [tf.unstack(tf.reduce_sum(part, 0)) for part in (mean, tf.sqrt(variance))]
    found = np.array([[tape.gradient(each, X).numpy() for each in part] for part in columns])
    slopes = emulator.columns.summed(np.moveaxis(found, -1, 0))  # [D, 2, Q, N]
    slopes[emulator.columns.are_categories] = np.nan
    of_mean, of_std = (emulator.shaped(part) for part in np.transpose(slopes, (1, 3, 0, 2)))
    return of_mean, of_std


def sobol_indices(
    model: Any,
    bounds: npt.ArrayLike,
    *,
    num_points: int = 2_048,
    num_functions: int = 40,
    seed: int = 0,
) -> SobolIndices:
    """Estimate Sobol indices of uniform inputs, by :func:`scipy.stats.sobol_indices`.

    Those of the mean are estimated from all points. Intervals are of functions drawn from the
    posterior (Le Gratiet et al., "A Bayesian approach for global sensitivity analysis of
    (multi-fidelity) computer codes", 2014), each on one of eight randomisations of the points, so
    that they hold what the emulator and the integration are uncertain of.

    Where failures are modelled, it is of E f + (1 - p) (f - E f), with the average over successful
    runs and the probability p that a run fails: where runs fail nothing has an effect.

    :param model: A fitted estimator or a trained model.
    :param bounds: Lower and upper bound of each input, [D, 2].
    :param num_points: Points of the two matrices of Saltelli et al. (2010); functions are evaluated
        at D + 2 times as many.
    :param num_functions: Function draws, a multiple of eight.
    :param seed: Of points and draws.
    :raises ValueError: If the model is not fitted, or the bounds are no bounds.
    """
    emulator = as_emulator(model)
    limits = emulator.columns.limits(bounds)
    check_integers(at_least=_GROUPS, num_points=num_points)
    size = 2 ** int(np.log2(num_points // _GROUPS))  # as scrambled Sobol points need
    X = emulator.columns.expanded(sobol_points(limits, 512, seed))
    average = np.average(emulator.moments(X)[0], axis=0, weights=emulator.success(X))
    found = []
    for group, functions in enumerate(_function_draws(emulator, num_functions, seed)):

        def evaluate(x: Array, functions: Callable[[Array], Array] = functions) -> Array:
            X = emulator.columns.expanded(x.T)
            values = np.concatenate([emulator.moments(X)[0][None], functions(X)])
            held = average + emulator.success(X)[:, None] * (values - average)  # [S, N, Q]
            return np.moveaxis(held, 2, 1).reshape(-1, len(X))

        indices = scipy.stats.sobol_indices(
            func=evaluate,
            n=size,
            dists=[scipy.stats.uniform(low, high - low) for low, high in limits],
            random_state=np.random.default_rng([seed, group]),
        )
        shape = -1, emulator.num_outputs, len(limits)
        parts = indices.first_order, indices.total_order
        found.append([np.moveaxis(part.reshape(shape), 1, 2) for part in parts])
    grouped = [np.clip(part, 0.0, 1.0) for part in zip(*found, strict=True)]  # [groups, S, D, Q]
    of_mean = [part[:, 0].mean(0) for part in grouped]
    intervals = [np.quantile(np.concatenate(part[:, 1:]), _TAILS, axis=0) for part in grouped]
    return SobolIndices(*map(emulator.shaped, (*of_mean, *intervals)))


def main_effects(
    model: Any,
    bounds: npt.ArrayLike,
    *,
    resolution: int = 30,
    num_points: int = 256,
    num_functions: int = 40,
    seed: int = 0,
) -> MainEffects:
    """Average the output over all inputs but one, as a function of that one.

    Inputs are uniform, and where failures are modelled weighted by the probability of success.
    Intervals of a Gaussian process are in closed form for these points, with the variance between
    draws of its kernel; all others are of function draws.

    :param model: A fitted estimator or a trained model.
    :param bounds: Lower and upper bound of each input, [D, 2].
    :param resolution: Values of each input, K.
    :param num_points: Points that are averaged over.
    :param num_functions: Function draws that bands are made of.
    :param seed: Of points and draws.
    :raises ValueError: If the model is not fitted, or the bounds are no bounds.
    """
    emulator = as_emulator(model)
    limits = emulator.columns.limits(bounds)
    base = sobol_points(limits, num_points, seed)
    grid = np.linspace(limits[:, 0], limits[:, 1], resolution, axis=1)  # [D, K]
    grid = emulator.columns.rounded(grid.T).T
    X = np.broadcast_to(base, (*grid.shape, *base.shape)).copy()
    for index, values in enumerate(grid):
        X[index, :, :, index] = values[:, None]
    flat = emulator.columns.expanded(X.reshape(-1, len(limits)))
    weights = emulator.success(flat).reshape(*X.shape[:3], 1)
    weights = weights / np.maximum(weights.sum(2, keepdims=True), np.finfo(float).tiny)

    def average(values: Array) -> Array:
        return np.sum(weights * values.reshape(len(values), *X.shape[:3], -1), axis=3)

    mean = average(emulator.moments(flat)[0][None])[0]
    is_normal = type(emulator.posterior.likelihood) in (Gaussian, RowMeansGaussian)
    if is_normal and not (getattr(emulator.posterior, "hidden", True) or _num_near(emulator.model)):
        of_each = _deviations(emulator, flat.reshape(-1, num_points, flat.shape[1]), weights)
        interval = mean + np.multiply.outer(
            scipy.stats.norm.ppf(_TAILS), of_each.reshape(mean.shape)
        )
    else:
        (draws,) = _function_draws(emulator, num_functions, seed, num_groups=1)
        interval = np.quantile(average(draws(flat)), _TAILS, axis=0)
    mean, interval = (emulator.shaped(part, are_outputs=True) for part in (mean, interval))
    at = emulator.units.to_model(emulator.columns.expanded(base))
    shares = None if emulator.model is None else variance_shares(emulator.model, at)
    if shares is not None:
        single, joint = emulator.columns.summed(shares.single), shares.joint
        shares = VarianceShares(*map(emulator.shaped, (single, joint)))
    return MainEffects(grid, mean, interval, shares)


def _num_near(model: Any) -> int:
    """From how many nearest rows it predicts as well."""
    return int(getattr(model.output_layer, "num_neighbours", 0))


def _deviations(emulator: Emulator, X: Array, weights: Array) -> Array:
    """Deviations of averages of Gaussian processes, [A, Q], of points [A, N, E] with weights."""
    covariances = (emulator.units.joint_moments(emulator.posterior, x)[1] for x in X)
    pairs = zip(covariances, weights.reshape(X.shape[:2]), strict=True)
    return np.array([np.sqrt(np.maximum(C @ w @ w, 0.0)) for C, w in pairs])


def _function_draws(
    emulator: Emulator, num_functions: int, seed: int, num_groups: int = _GROUPS
) -> Iterator[Callable[[Array], Array]]:
    """Sets of functions, each from [N, D] to [S, N, Q] in raw units, without noise."""
    units, warp, model = emulator.units, warp_of(emulator.posterior.likelihood), emulator.model
    num_samples = -(-num_functions // num_groups)
    entries = num_samples * _WAVES
    if model is not None and (num_near := _num_near(model)):
        num_draws = num_samples if model.num_hidden_layers else 1
        size = num_near * (num_near + model.output_layer.num_inducing)
        entries = max(entries, num_draws * size)
    for group in range(num_groups):
        of_group = 1_000 * seed + group
        if model is None:
            drawn = emulator.estimator._draws(num_samples, of_group).functions
        else:
            drawn = FunctionDraws(model, num_samples, num_features=_WAVES, seed=of_group)

        def functions(X: Array, drawn: Any = drawn) -> Array:
            num_blocks = 1 + len(X) * entries // _BLOCK
            blocks = np.array_split(units.to_model(X), num_blocks)
            values = tf.concat([drawn(tf.constant(block)) for block in blocks], axis=1)
            values = values if warp is None else warp.inverse(values)
            return np.asarray(units.to_raw(values.numpy())[..., : emulator.num_outputs])

        yield functions
