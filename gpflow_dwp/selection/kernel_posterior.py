"""Draws of the values of a single layer's kernels from their posterior."""

from __future__ import annotations

import numpy as np
from gpflow import default_float

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation.pareto_smoothing import pareto_smoothed
from gpflow_dwp.kernels.draws import num_values
from gpflow_dwp.kernels.values import parts_of, values_of
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods.named import is_noise_free
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.evidence import Evidence
from gpflow_dwp.selection.kernel_gradients import CLOSED_FORMS
from gpflow_dwp.selection.leave_one_out import leave_one_out
from gpflow_dwp.selection.outputs import of_output

__all__ = ["draw_kernel_of", "draw_kernel_values"]

_NUM_DRAWS = 20
_DEGREES = 5.0
# Of a direction that the evidence does not tell much of, on the scale of logarithms.
_WIDEST = 1.5
_STEP = 1e-3
# Proposals, of few rows and of many, and how those of few are moved.
_FEW_ROWS, _NUM_PROPOSALS = 200, (200, 100)
_NUM_MOVES, _STEPS_OF_MOVE, _MOVE = 3, 5, 0.7
# Of all kernels' covariances under one draw.
_MOST_ENTRIES = 1_000_000


def draw_kernel_values(evidence: Evidence, num_draws: int, seed: int) -> Array:
    """Draw logarithms of lengthscales and variance from their posterior, less those at its mode.

    Their prior is flat, but for lengthscales of sums, and beyond its limits a value counts as the
    limit; noise and warp stay.
    Proposals are of a t distribution of 5 degrees of freedom with the curvature that the evidence
    has at its mode; draws are these, as often as their Pareto-smoothed importance weights say.
    Where there are few rows, and weights poor, Hamiltonian Monte Carlo moves each ("MCMC using
    Hamiltonian dynamics", Neal, 2011).

    :param evidence: Of an exact process, at the mode of what it is a function of.
    :param num_draws: Number of draws, S.
    :param seed: Of the proposals.
    :return: [S, K].
    """
    mode, K = evidence.start(), evidence.num_kernel_values
    low, high = evidence.limits()[:K].T
    slopes = np.empty((K, K))
    for k, step in enumerate(_STEP * np.eye(len(mode))[:K]):
        slopes[k] = (evidence(mode + step)[1] - evidence(mode - step)[1])[:K] / (2.0 * _STEP)
    curvatures, directions = np.linalg.eigh(-0.5 * (slopes + slopes.T))
    deviations = np.maximum(curvatures, _WIDEST**-2.0) ** -0.5
    root = (directions * deviations) @ directions.T  # symmetric: signs of directions are arbitrary

    rng = np.random.default_rng(seed)
    are_few = len(evidence.X) <= _FEW_ROWS
    normals = rng.standard_normal((_NUM_PROPOSALS[not are_few], K))
    normals *= np.sqrt(_DEGREES / rng.chisquare(_DEGREES, (len(normals), 1)))
    proposals = np.clip(mode[:K] + normals @ root.T, low, high)
    rest = mode[K:]
    log_target = [evidence.value(np.append(values, rest)) for values in proposals]
    log_proposal = -0.5 * (_DEGREES + K) * np.log1p(np.sum(normals**2, axis=1) / _DEGREES)
    log_weights, _ = pareto_smoothed((np.array(log_target) - log_proposal)[:, None])
    total = np.cumsum(np.exp(log_weights[:, 0]))
    levels = total[-1] * (np.arange(num_draws) + 0.5) / num_draws
    draws = proposals[np.searchsorted(total, levels)]
    if are_few:
        for _ in range(_NUM_MOVES):
            draws = np.array([_moved(evidence, draw, rest, root, rng) for draw in draws])
    at_mode = evidence.logs_of_kernel(mode)
    return np.array([evidence.logs_of_kernel(each) for each in np.clip(draws, low, high)]) - at_mode


def _moved(
    evidence: Evidence, start: Array, rest: Array, root: Array, rng: np.random.Generator
) -> Array:
    """Where a trajectory ends that keeps the posterior, in units of the proposals' deviations."""
    K = len(start)
    low, high = evidence.limits()[:K].T

    def slope(values: Array) -> tuple[float, Array]:
        value, gradient = evidence(np.append(np.clip(values, low, high), rest))
        return value, root.T @ gradient[:K]

    (begun, gradient), momentum = slope(start), rng.standard_normal(K)
    before = begun - 0.5 * momentum @ momentum
    size, values = _MOVE * K**-0.25 * rng.uniform(0.5, 1.5), start
    for _ in range(_STEPS_OF_MOVE):
        momentum = momentum + 0.5 * size * gradient
        values = values + size * root @ momentum
        value, gradient = slope(values)
        momentum = momentum + 0.5 * size * gradient
    after = value - 0.5 * momentum @ momentum
    return values if np.log(rng.random()) < after - before else start


def draw_kernel_of(
    model: DeepWishartProcess, weights: Array | None, steps: Array, seed: int
) -> tuple[bool, str]:
    """Give a single layer draws of its kernels, if it can have some and they change predictions.

    :param model: At the mode of what it is fitted by.
    :param weights: How often each row counts there, [N]; None for once.
    :param steps: To which each column was recorded, [P].
    :param seed: Of the draws.
    :return: Whether it has some now, and a sentence that says so; none where it cannot.
    """
    layer, likelihood = model.output_layer, model.likelihood
    if not isinstance(layer, RegressionGPLayer):
        return False, ""
    (X, Y), kernels = (part.numpy() for part in layer.rows), layer.kernels
    are_own = len(kernels) > 1
    if not (
        (are_own or Y.shape[1] == 1 or is_noise_free(likelihood))
        and len(X) <= policy.ROWS_FOR_CHOICE
        and len(X) ** 2 * len(kernels) <= _MOST_ENTRIES
        and not (model.hidden_layers or layer.num_neighbours)
        and layer.num_inducing == len(np.unique(X, axis=0))
        and num_values(layer.kernel)
        and all(type(part) in CLOSED_FORMS for each in kernels for part in parts_of(each))
        and default_float() == np.float64
    ):
        return False, ""
    weights = np.ones(len(X)) if weights is None else weights
    drawn = []
    for index, kernel in enumerate(kernels):
        outputs = slice(index, index + 1) if are_own else slice(None)
        rows = (weights > 0.0) & ~np.isnan(Y[:, outputs]).any(axis=1)
        evidence = Evidence(
            X[rows],
            Y[rows, outputs],
            weights[rows],
            steps[outputs],
            values_of(kernel),
            of_output(likelihood, index) if are_own else likelihood,
            None if layer.precisions is None else layer.precisions.numpy()[rows],
            layer.jitter,
        )
        drawn.append(draw_kernel_values(evidence, _NUM_DRAWS, seed + index))
    before = leave_one_out(model)
    layer.set_kernel_draws(np.hstack(drawn))
    after = leave_one_out(model)
    scale = np.sqrt(before.variance())
    change = ((after.mean() - before.mean()) / scale) ** 2
    change += np.log(np.sqrt(after.variance()) / scale) ** 2
    own = "each kernel's" if are_own else "the kernel's"
    if np.sqrt(change.mean(0).max()) < policy.CHANGE_BY_DRAWS:
        layer.set_kernel_draws(None)
        return False, f"Other values of {own[:-2]} would make no difference."
    return True, f"Predictions average over {_NUM_DRAWS} draws of {own} values."
