"""What a Gaussian process predicts of functions: at rows left out, given a few others, or new."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian
from scipy.linalg.blas import dsymm

from gpflow_dwp.base import Array
from gpflow_dwp.gaussian_process.conditionals import condition
from gpflow_dwp.gaussian_process.covariances import covariance
from gpflow_dwp.gaussian_process.evidence import solve
from gpflow_dwp.kernels.values import Parts
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.neighbours import Index

__all__ = ["leave_out", "predict", "predict_given", "sites", "solved"]

# Of covariances of neighbours that are in memory at once.
_MOST_ENTRIES = 2**22


def sites(
    Y: Array, weights: Array, likelihood: Gaussian, precisions: Array | None = None
) -> tuple[Array, Array]:
    """What a process sees: warped observations, [N, P], and the variance of their noise, [N].

    :param Y: Observations, [N, P].
    :param weights: How often each row counts, w, [N].
    :param likelihood: Gaussian or Student's noise, of warped observations or not.
    :param precisions: λ, [N], under Student's noise.
    """
    warp = warp_of(likelihood)
    Z = Y if warp is None else warp.forward(tf.constant(Y)).numpy()
    noise = float(np.max(tf.convert_to_tensor(likelihood.variance))) / weights
    return Z, noise if precisions is None else noise / precisions


def leave_out(X: Array, Z: Array, noise: Array, kernel: Kernel | Parts) -> tuple[Array, Array]:
    r"""Mean, [N, P], and variance, [N], of functions at each row given all others.

    With A = K + diag(σ²) the mean is zₙ - [A⁻¹z]ₙ / [A⁻¹]ₙₙ, and the variance 1/[A⁻¹]ₙₙ less the
    row's noise (Sundararajan and Keerthi, "Predictive approaches for choosing hyperparameters in
    Gaussian processes", 2001; Rasmussen and Williams, 2006, equation 5.12). Parameters stay as they
    were fitted to all.

    :param X: Inputs, [N, D].
    :param Z: Observations on the scale of the functions, [N, P].
    :param noise: Variance of each row's noise, [N].
    :raises FloatingPointError: If A cannot be factorised.
    """
    alpha, inverse = solved(X, Z, noise, kernel)
    spread = 1.0 / np.diagonal(inverse)
    return Z - alpha * spread[:, None], np.maximum(spread - noise, 0.0)


def predict_given(
    X: Array, Z: Array, noise: Array, kernel: Kernel | Parts, neighbours: Index
) -> tuple[Array, Array]:
    """Mean, [B, P], and variance, [B], of functions at some rows given a few others each.

    It is Vecchia's approximation of :func:`leave_out`, whose other parameters it has: time and
    memory are those of the B rows. With all others as neighbours it is exact.

    :param neighbours: Indices of the others, and of the row itself last, [B, m + 1].
    :raises FloatingPointError: If a covariance cannot be factorised.
    """
    n = np.arange(neighbours.shape[1])
    means, spreads = [], []
    for block in np.array_split(neighbours, math.ceil(neighbours.size * len(n) / _MOST_ENTRIES)):
        A = covariance(kernel, X[block])
        A[:, n, n] += noise[block]
        found = condition(A, Z[block])
        if found is None:
            raise FloatingPointError("K + σ² I of some neighbours cannot be factorised.")
        means.append(Z[block[:, -1]] - found.residual)
        spreads.append(1.0 / found.precision)
    own = noise[neighbours[:, -1]]
    return np.concatenate(means), np.maximum(np.concatenate(spreads) - own, 0.0)


def predict(
    X: Array, kernel: Kernel | Parts, alpha: Array, inverse: Array, unseen: Array
) -> tuple[Array, Array]:
    """Mean, [N*, P], and variance, [N*], of functions at rows that were not seen.

    :param X: Inputs of those that were, [N, D].
    :param alpha: Of :func:`solved`, [N, P], as is ``inverse``, [N, N].
    :param unseen: Inputs of the others, [N*, D].
    """
    C = covariance(kernel, X, unseen)
    explained = np.sum(C * dsymm(1.0, inverse, C, lower=True), axis=0)
    variance = covariance(kernel, unseen[:, None])[:, 0, 0] - explained
    return C.T @ alpha, np.maximum(variance, 0.0)


def solved(X: Array, Z: Array, noise: Array, kernel: Kernel | Parts) -> tuple[Array, Array]:
    """A⁻¹ Z and A⁻¹, its lower triangle, for A = K + diag(noise); see :func:`leave_out`."""
    found = solve(covariance(kernel, X), noise, Z)
    if found is None:
        raise FloatingPointError("K + σ² I cannot be factorised.")
    return found[1:]
