"""What a model predicts of each observation, had it not seen it."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsymm

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.kernels.values import Parts
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.layers.propagation import regression_blocks
from gpflow_dwp.likelihoods import NormalMixture, WarpedGaussian, WarpedStudentT
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models import DeepKernelProcess
from gpflow_dwp.models.predictive import warped_moments
from gpflow_dwp.neighbours import Index
from gpflow_dwp.random import as_seed
from gpflow_dwp.selection.conditionals import condition
from gpflow_dwp.selection.evidence import solve
from gpflow_dwp.selection.kernel_gradients import covariance
from gpflow_dwp.validation import is_known

__all__ = [
    "leave_one_out",
    "leave_one_out_by_neighbours",
    "leave_one_out_of_heteroskedastic",
    "leave_one_out_of_process",
    "moments_by_neighbours",
    "precisions_of_all",
    "predict_unseen",
    "squared_noise",
]

_LEAST_LEFT = 0.02
# Between factors of precision, and what they leave of the noise.
_PASSES = 20
# Of covariances of neighbours that are in memory at once.
_MOST_ENTRIES = 2**22


def leave_one_out_of_process(
    X: Array,
    Y: Array,
    weights: Array,
    kernel: Kernel | Parts,
    likelihood: Gaussian,
    precisions: Array | None = None,
) -> PredictiveDistribution:
    r"""Predict each observation from all others, by an exact Gaussian process.

    With A = K + diag(σ²/w λ) and z = g(y), the mean is zₙ - [A⁻¹z]ₙ / [A⁻¹]ₙₙ, and the variance of
    the function 1/[A⁻¹]ₙₙ less the row's noise (Sundararajan and Keerthi, "Predictive approaches
    for choosing hyperparameters in Gaussian processes", 2001; Rasmussen and Williams, 2006,
    equation 5.12). Parameters stay as they were fitted to all.

    :param X: Inputs, [N, D].
    :param Y: Observations, [N, P].
    :param weights: How often each row counts, w, [N].
    :param kernel: The process's.
    :param likelihood: Its noise, Gaussian or Student's, of warped observations or not.
    :param precisions: λ, [N], under Student's noise.
    :return: The distributions of the observations, in their units.
    """
    Z, noise = _sites(Y, weights, likelihood, precisions)
    alpha, inverse = _solved(X, Z, noise, kernel)
    spread = 1.0 / np.diagonal(inverse)[:, None]
    mean, variance = Z - alpha * spread, np.maximum(spread - noise[:, None], 0.0)
    variance = np.broadcast_to(variance, mean.shape)
    return _observed(likelihood, X, mean[None], variance[None], weights)


def leave_one_out_by_neighbours(
    X: Array,
    Y: Array,
    weights: Array,
    kernel: Kernel | Parts,
    likelihood: Gaussian,
    neighbours: Index,
    precisions: Array | None = None,
) -> PredictiveDistribution:
    """Predict some observations, each from a few others: Vecchia's approximation of the above.

    Time and memory are those of the B rows. With all others as neighbours it is exact.

    :param X: Inputs, [N, D], with ``Y``, ``weights``, ``precisions`` and the process as in
        :func:`leave_one_out_of_process`.
    :param neighbours: Indices of the others, and of the row itself last, [B, m + 1].
    :return: The distributions of the B observations.
    """
    Z, noise = _sites(Y, weights, likelihood, precisions)
    mean, variance = moments_by_neighbours(X, Z, noise, kernel, neighbours)
    variance = np.broadcast_to(variance[:, None], mean.shape)
    return _observed(likelihood, X[neighbours[:, -1]], mean[None], variance[None])


def moments_by_neighbours(
    X: Array, Z: Array, noise: Array, kernel: Kernel | Parts, neighbours: Index
) -> tuple[Array, Array]:
    """Mean, [B, P], and variance, [B], of functions at rows given observations of others.

    :param X: Inputs, [N, D].
    :param Z: Observations on the scale of the functions, [N, P].
    :param noise: Variance of each row's noise, [N].
    :param neighbours: As in :func:`leave_one_out_by_neighbours`.
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


def predict_unseen(
    X: Array, Y: Array, weights: Array, kernel: Kernel | Parts, likelihood: Gaussian, unseen: Array
) -> PredictiveDistribution:
    """Predict rows that an exact Gaussian process has not seen.

    :param X: Inputs, [N, D], with ``Y``, ``weights`` and the process as in
        :func:`leave_one_out_of_process`, but without tails.
    :param unseen: Inputs of the rows to predict, [N*, D].
    :return: The distributions of their observations.
    """
    Z, noise = _sites(Y, weights, likelihood, None)
    mean, variance = _unseen_moments(_solved(X, Z, noise, kernel), X, kernel, unseen)
    variance = np.broadcast_to(variance[:, None], mean.shape)
    return _observed(likelihood, unseen, mean[None], variance[None])


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
    Z, noise = _sites(Y, weights, likelihood, precisions)
    solved, df = solve(covariance(kernel, X), noise, Z), likelihood.df.numpy()
    if solved is None:
        return found
    num_blocks = math.ceil(len(rows) * len(others) / _MOST_ENTRIES)
    for block in np.array_split(others, num_blocks):
        z, one = _sites(data[1][block], np.ones(len(block)), likelihood, None)
        mean, variance = _unseen_moments(solved[1:], X, kernel, data[0][block])
        for _ in range(_PASSES):
            noise = one / (data[2][block] * found[block])
            squares = squared_noise(z - mean, variance, noise) / one
            found[block] = (df + 1.0) / (df + squares)
    return found


def squared_noise(residual: Array, variance: Array, noise: Array) -> Array:
    """Expected square of an observation's noise, given it and what others predict, [N].

    :param residual: The observation less its predicted mean, [N, P].
    :param variance: Of the function given all others, [N].
    :param noise: The row's, σ²/w λ, [N].
    """
    share = variance / (variance + noise)
    return np.mean(((1.0 - share[:, None]) * residual) ** 2, axis=1) + share * noise


def _unseen_moments(
    solved: tuple[Array, Array], X: Array, kernel: Kernel | Parts, unseen: Array
) -> tuple[Array, Array]:
    """Mean, [N*, P], and variance, [N*], of functions at rows that were not seen."""
    alpha, inverse = solved
    C = covariance(kernel, X, unseen)
    explained = np.sum(C * dsymm(1.0, inverse, C, lower=True), axis=0)
    variance = covariance(kernel, unseen[:, None])[:, 0, 0] - explained
    return C.T @ alpha, np.maximum(variance, 0.0)


def leave_one_out(
    model: DeepKernelProcess, num_samples: int = 60, seed: int = 0, rows: Index | None = None
) -> PredictiveDistribution:
    r"""Predict each row of a model's data from all others, given each draw of its Gram matrices.

    Given the Gram matrices the output is a regression, whose posterior without row n follows from
    that with it: with τ the precision of the layer's noise and hₙ what is left of the variance of
    the projected function,

    .. math:: m_{-n} = \frac{m_n - \tau h_n y_n}{1 - \tau h_n}, \qquad
              h_{-n} = \frac{h_n}{1 - \tau h_n} .

    The draws are those of the posterior of all rows, mixed with equal weights: with few rows and a
    flexible posterior that is too favourable. In a single layer it is exact.

    :param model: With a :class:`~gpflow_dwp.layers.RegressionGPLayer` at its top; where that
        predicts from nearest rows, so does this.
    :param num_samples: Number of draws, S.
    :param seed: Of the draws.
    :param rows: Indices of the rows to predict, [B]; None for all, in their order.
    :raises ValueError: If the output layer is another.
    """
    output = model.output_layer
    if not (isinstance(output, RegressionGPLayer) and is_known(model.likelihood, Gaussian)):
        raise ValueError(
            "model must have a RegressionGPLayer as its output layer and Gaussian noise, got "
            f"{type(output).__name__} and {type(model.likelihood).__name__}."
        )
    X = output.inputs.numpy()
    rows = np.arange(len(X)) if rows is None else rows
    if output.num_neighbours:
        num_samples = num_samples if model.hidden_layers else 1
        draw, num_near = model.posterior(num_samples, seed=seed).path.output, output.num_neighbours
        size = num_samples * (num_near + 1) * (num_near + output.num_inducing + 1)
        blocks = np.array_split(rows, math.ceil(len(rows) * size / _MOST_ENTRIES))
        found = [output.leave_out(draw, block) for block in blocks if len(block)]
        mean, variance = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
        if output.mean_function is not None:
            mean = mean + output.mean_function(X[rows]).numpy()
        variance = np.repeat(variance[..., None], mean.shape[2], axis=2)
        return _observed(model.likelihood, X[rows], mean, variance)
    K, C, diagonal, targets = (
        part.numpy()
        for part in regression_blocks(
            model.hidden_layers,
            output.for_predictions(),
            model.inducing_variable.Z,
            num_samples,
            as_seed(seed),
            warp_of(model.likelihood),
        )
    )
    is_seen = np.isfinite(output.observed.numpy())
    tau = is_seen / output.noise_variance.numpy()
    for factor in (output.weights, output.precisions):
        if factor is not None:
            tau = tau * factor.numpy()[:, None]
    parts = [(K, C, diagonal, targets, tau[:, 0])]
    if K.ndim == 4:
        columns = targets.T[..., None], tau.T
        parts = list(zip(*(np.moveaxis(e, 1, 0) for e in (K, C, diagonal)), *columns, strict=True))
    moments = [_left_out(output.jitter, *part) for part in parts]
    mean, variance = (np.concatenate(each, axis=-1) for each in zip(*moments, strict=True))
    if output.mean_function is not None:
        mean = mean + output.mean_function(X).numpy()
    counts = None if output.weights is None else output.weights.numpy()[rows]
    return _observed(model.likelihood, X[rows], mean[:, rows], variance[:, rows], counts)


def _left_out(
    jitter: float, K: Array, C: Array, diagonal: Array, targets: Array, tau: Array
) -> tuple[Array, Array]:
    """Means and variances of functions that share a kernel, [S, N, Q], each row left out."""
    means, variances = [], []
    for K_s, C_s, k_s in zip(K, C, diagonal, strict=True):
        A = _whitened(K_s + jitter * np.mean(np.diagonal(K_s)) * np.eye(len(K_s)), C_s)
        U = _whitened(np.eye(len(A)) + (A * tau) @ A.T, A)
        h = np.sum(U * U, axis=0)
        mean = U.T @ (U @ (tau[:, None] * targets))
        left = np.maximum(1.0 - tau * h, 1e-10)
        means.append((mean - (tau * h)[:, None] * targets) / left[:, None])
        residual = np.maximum(k_s - np.sum(A * A, axis=0), 0.0)
        variances.append((h / left + residual)[:, None].repeat(targets.shape[1], 1))
    return np.stack(means), np.stack(variances)


def leave_one_out_of_heteroskedastic(
    model: DeepKernelProcess, X: Array, Y: Array
) -> PredictiveDistribution:
    """Predict each row from all others, roughly, under heteroskedastic noise.

    The posterior of the function loses what the row added, a normal site with the noise's expected
    precision; that of the noise stays. A site that holds nearly all that is known of its row is
    taken out in part only.

    :param model: With learned pseudo-targets and a :class:`HeteroskedasticGaussian`.
    :param X: Inputs, [N, D].
    :param Y: Observations, [N, P].
    """
    likelihood = model.likelihood
    moments = model.posterior(1, seed=0).predict_f_components(X)
    mean, variance = (moment.numpy().copy() for moment in moments)
    P = Y.shape[1]
    amplitude, scale = likelihood.amplitude.numpy(), likelihood.scale.numpy()
    log_scale = np.log(scale) + amplitude * mean[..., P:]
    tau = np.exp(2.0 * (amplitude**2 * variance[..., P:] - log_scale))
    left = np.maximum(1.0 - tau * variance[..., :P], _LEAST_LEFT)
    mean[..., :P] = (mean[..., :P] - tau * variance[..., :P] * Y) / left
    variance[..., :P] /= left
    return _observed(likelihood, X, mean, variance)


def _sites(
    Y: Array, weights: Array, likelihood: Gaussian, precisions: Array | None
) -> tuple[Array, Array]:
    """What a process sees: warped observations, [N, P], and the variance of their noise, [N]."""
    warp = warp_of(likelihood)
    Z = Y if warp is None else warp.forward(tf.constant(Y)).numpy()
    noise = float(np.max(tf.convert_to_tensor(likelihood.variance))) / weights
    return Z, noise if precisions is None else noise / precisions


def _solved(X: Array, Z: Array, noise: Array, kernel: Kernel | Parts) -> tuple[Array, Array]:
    """A⁻¹ Z and A⁻¹, its lower triangle, for A = K + diag(noise)."""
    solved = solve(covariance(kernel, X), noise, Z)
    if solved is None:
        raise FloatingPointError("K + σ² I cannot be factorised.")
    return solved[1:]


def _whitened(K: Array, C: Array) -> Array:
    """L⁻¹ C, for the Cholesky factor L of K."""
    return solve_triangular(np.linalg.cholesky(K), C, lower=True, check_finite=False)


def _observed(
    likelihood: Gaussian, X: Array, mean: Array, variance: Array, weights: Array | None = None
) -> PredictiveDistribution:
    """The distribution of observations, of functions with these moments, [S, N, P] each.

    :param weights: Of rows, [N], where they are observed as such: under a RowMeansGaussian.
    """
    moments = tuple(tf.constant(np.asarray(part)) for part in (mean, variance))
    if isinstance(likelihood, WarpedGaussian | NormalMixture):
        means, variances = (m.numpy() for m in warped_moments(likelihood, tf.constant(X), *moments))
    elif isinstance(likelihood, RowMeansGaussian) and weights is not None:
        means, variances = mean, variance + likelihood.noise_of(weights)
    else:
        means, variances = mean, variance + np.asarray(tf.convert_to_tensor(likelihood.variance))
    weights = None
    if isinstance(likelihood, NormalMixture):
        weights = likelihood.component_weights(len(means))
    return PredictiveDistribution(means, variances, None, warp_of(likelihood), weights)
