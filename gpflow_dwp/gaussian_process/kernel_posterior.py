"""Draws of a kernel's values from their posterior."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.gaussian_process.evidence import Evidence

__all__ = ["draw_kernel_values"]

# Of a direction that the evidence does not tell much of, on the scale of logarithms.
_WIDEST = 1.5
_STEP = 1e-3
_NUMS_OF_MOVES, _STEPS_OF_MOVE, _MOVE = (1, 2), 5, 0.7


def draw_kernel_values(evidence: Evidence, num_draws: int, seed: int) -> Iterator[Array]:
    """Yield draws of a kernel's values from their posterior, once roughly and then as they stay.

    They are of logarithms of lengthscales and variance, less those at the mode. Their prior is
    flat, but for lengthscales of sums, and beyond its limits a value counts as the limit; noise and
    warp stay.
    Draws begin as normal ones about the mode, with the curvature that the evidence has there, and
    are moved by Hamiltonian Monte Carlo, once and then twice more ("MCMC using Hamiltonian
    dynamics", Neal, 2011). Importance weights of as many proposals as are affordable rest on a few
    of them from some ten values on.

    :param evidence: Of an exact process, at the mode of what it is a function of.
    :param num_draws: Number of draws, S.
    :param seed: Of the draws.
    :return: [S, K], twice.
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
    draws = mode[:K] + rng.standard_normal((num_draws, K)) @ root.T
    for num_moves in _NUMS_OF_MOVES:
        for _ in range(num_moves):
            draws = np.array([_moved(evidence, draw, mode, root, rng) for draw in draws])
        draws = np.clip(draws, low, high)
        yield np.array([evidence.logs_of_kernel(each) for each in draws]) - at_mode


def _moved(
    evidence: Evidence, start: Array, mode: Array, root: Array, rng: np.random.Generator
) -> Array:
    """Where a trajectory ends that keeps the posterior, in units of the draws' deviations.

    From where there is no density it is the mode that moves.
    """
    K = len(start)
    low, high = evidence.limits()[:K].T

    def slope(values: Array) -> tuple[float, Array]:
        value, gradient = evidence(np.append(np.clip(values, low, high), mode[K:]))
        return value, root.T @ gradient[:K]

    (begun, gradient), momentum = slope(start), rng.standard_normal(K)
    if not np.isfinite(begun):
        start, (begun, gradient) = mode[:K], slope(mode[:K])
    before = begun - 0.5 * momentum @ momentum
    size, values = _MOVE * K**-0.25 * rng.uniform(0.5, 1.5), start
    for _ in range(_STEPS_OF_MOVE):
        momentum = momentum + 0.5 * size * gradient
        values = values + size * root @ momentum
        value, gradient = slope(values)
        momentum = momentum + 0.5 * size * gradient
    after = value - 0.5 * momentum @ momentum
    return values if np.log(rng.random()) < after - before else start
