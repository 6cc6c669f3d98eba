"""Draws of a kernel's values from their posterior."""

from __future__ import annotations

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.gaussian_process.evidence import Evidence
from gpflow_dwp.pareto_smoothing import pareto_smoothed

__all__ = ["draw_kernel_values"]

_DEGREES = 5.0
# Of a direction that the evidence does not tell much of, on the scale of logarithms.
_WIDEST = 1.5
_STEP = 1e-3
# Proposals, of few rows and of many, and how those of few are moved.
_FEW_ROWS, _NUM_PROPOSALS = 200, (200, 100)
_NUM_MOVES, _STEPS_OF_MOVE, _MOVE = 3, 5, 0.7


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
    mode = evidence.start()
    at_mode = evidence.logs_of_kernel(mode)
    K = len(at_mode)
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
