"""Student's noise as Gaussian noise of a scale that each row has: what rows tell of theirs."""

from __future__ import annotations

import math

import numpy as np
from gpflow.kernels import Kernel
from scipy.special import digamma, gammaln

from gpflow_dwp.base import Array
from gpflow_dwp.gaussian_process.covariances import covariance
from gpflow_dwp.gaussian_process.evidence import solve
from gpflow_dwp.gaussian_process.predictions import predict, predict_given, sites
from gpflow_dwp.kernels.values import Parts
from gpflow_dwp.likelihoods import WarpedStudentT
from gpflow_dwp.neighbours import Index

__all__ = ["fit_student_noise", "precisions_of_all"]

# Between factors of precision, and what they leave of the noise.
_PASSES = 20
_MOST_ENTRIES = 2**22
# Of a fit: passes over all rows, and degrees of freedom that are tried in each.
_PASSES_OF_FIT, _DF = 5, np.exp(np.linspace(np.log(2.1), np.log(200.0), 50))


def precisions_of_all(
    data: tuple[Array, Array, Array],
    kernel: Kernel | Parts,
    likelihood: WarpedStudentT,
    rows: Index,
    precisions: Array,
) -> Array:
    """Learn λ, [N], of rows of which a process with Student's noise has been fitted to some.

    Those of others are means of their Gamma posteriors, given what the process predicts of the row.

    :param data: X, [N, D], Y, [N, P], and w, [N].
    :param rows: Those that it was fitted to, [n].
    :param precisions: λ of these, [n].
    """
    found = np.ones(len(data[0]))
    found[rows] = precisions
    others = np.setdiff1d(np.flatnonzero(data[2] > 0.0), rows)
    if not len(others):
        return found
    X, Y, weights = (part[rows] for part in data)
    Z, noise = sites(Y, weights, likelihood, precisions)
    solved, df = solve(covariance(kernel, X), noise, Z), likelihood.df.numpy()
    if solved is None:
        return found
    num_blocks = math.ceil(len(rows) * len(others) / _MOST_ENTRIES)
    for block in np.array_split(others, num_blocks):
        z, one = sites(data[1][block], np.ones(len(block)), likelihood)
        mean, variance = predict(X, kernel, *solved[1:], data[0][block])
        for _ in range(_PASSES):
            noise = one / (data[2][block] * found[block])
            squares = _squared_noise(z - mean, variance, noise) / one
            found[block] = (df + 1.0) / (df + squares)
    return found


def fit_student_noise(
    X: Array, Z: Array, weights: Array, kernel: Kernel | Parts, noise: float, neighbours: Index
) -> tuple[float, float, Array]:
    """Fit Student's noise, given the process: σ², ν, and the factors of precision, [N].

    Each pass predicts rows from their neighbours with the factors that there are, adds what the row
    itself tells, and takes the best Gamma posteriors, and then the best σ² and ν of these.

    :param X: Inputs, [N, D].
    :param Z: Observations on the scale of the functions, [N, P].
    :param weights: How often each row counts, [N].
    :param kernel: The process's.
    :param noise: Where σ² starts.
    :param neighbours: Indices of each row's nearest others, and of itself last, [N, m + 1].
    """
    own, df, factors = neighbours[:, -1], 5.0, np.ones(len(X))
    for _ in range(_PASSES_OF_FIT):
        row_noise = noise / (weights * factors)
        mean, variance = predict_given(X, Z, row_noise, kernel, neighbours)
        squares = _squared_noise(Z[own] - mean, variance, row_noise[own]) / noise
        half = 0.5 * (df + squares)
        factors[own] = 0.5 * (df + 1.0) / half
        logs = digamma(0.5 * (df + 1.0)) - np.log(half)
        spread = np.average(logs - factors[own], weights=weights[own])
        h = 0.5 * _DF
        df = float(_DF[np.argmax(h * np.log(h) - gammaln(h) + h * spread)])
        noise *= float(np.average(factors[own] * squares, weights=weights[own]))
    return noise, df, factors


def _squared_noise(residual: Array, variance: Array, noise: Array) -> Array:
    """Expected square of an observation's noise, given it and what others predict, [N].

    :param residual: The observation less its predicted mean, [N, P].
    :param variance: Of the function given all others, [N].
    :param noise: The row's, σ²/w λ, [N].
    """
    share = variance / (variance + noise)
    return np.mean(((1.0 - share[:, None]) * residual) ** 2, axis=1) + share * noise
