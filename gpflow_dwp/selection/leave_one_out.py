"""What a model predicts of each observation, had it not seen it."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Gaussian
from scipy.linalg import solve_triangular

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.gaussian_process.predictions import leave_out, sites
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.layers.propagation import regression_blocks
from gpflow_dwp.likelihoods import NormalMixture, WarpedGaussian
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models import DeepKernelProcess
from gpflow_dwp.models.predictive import warped_moments
from gpflow_dwp.neighbours import Index
from gpflow_dwp.random import as_seed
from gpflow_dwp.validation import is_known

__all__ = [
    "distribution_of",
    "leave_one_out",
    "leave_one_out_of_heteroskedastic",
    "nats_of_function",
]

_LEAST_LEFT = 0.02
# Of covariances of neighbours that are in memory at once.
_MOST_ENTRIES = 2**22


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
        means, variances = zip(*found, strict=True)
        mean, variance = np.concatenate(means, axis=1), np.concatenate(variances, axis=-1)
        variance = np.moveaxis(variance, -1, 1)  # behind the axis of functions where they differ
        if output.mean_function is not None:
            mean = mean + output.mean_function(X[rows]).numpy()
        return distribution_of(model.likelihood, X[rows], mean, variance)
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
    return distribution_of(model.likelihood, X[rows], mean[:, rows], variance[:, rows], counts)


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


def nats_of_function(
    layer: RegressionGPLayer, likelihood: Gaussian, weights: Array | None = None
) -> float:
    """What log density a row would gain if the function were known, and only noise not.

    :param layer: An exact single layer of one output, each row of which is predicted from others.
    :param likelihood: Its noise.
    :param weights: How often each row counts, [N]; None for once.
    """
    X, Y = layer.inputs.numpy(), layer.observed.numpy()
    counts = np.ones(len(X)) if weights is None else weights
    rows, precisions = counts > 0.0, layer.precisions
    precisions = None if precisions is None else precisions.numpy()[rows]
    Z, noise = sites(Y[rows], counts[rows], likelihood, precisions)
    _, variance = leave_out(X[rows], Z, noise, layer.kernel)
    return 0.5 * float(np.mean(np.log1p(variance / noise)))


def leave_one_out_of_heteroskedastic(
    model: DeepKernelProcess, X: Array, Y: Array
) -> PredictiveDistribution:
    r"""Predict each row from all others, roughly, under heteroskedastic noise.

    The posterior loses the normal sites that a row adds where the bound is at its maximum: with E
    its expected log density, a function of mean m and variance v has one of the precision τ = -2
    ∂E/∂v, whose product with its mean is ∂E/∂m + τ m (Opper and Archambeau, "The variational
    Gaussian approximation revisited", 2009). A site that holds nearly all that is known at its row
    is taken out in part only.

    :param model: With learned pseudo-targets and a :class:`HeteroskedasticGaussian`.
    :param X: Inputs, [N, D].
    :param Y: Observations, [N, P].
    """
    likelihood = model.likelihood
    moments = model.posterior(1, seed=0).predict_f_components(X)
    (mean, h), (variance, of_h) = (np.split(moment.numpy(), 2, axis=-1) for moment in moments)
    a, scale = likelihood.amplitude.numpy(), likelihood.scale.numpy()
    tau = np.exp(2.0 * (a**2 * of_h - np.log(scale) - a * h))
    squared = tau * ((Y - mean) ** 2 + variance)
    sites = (tau, tau * (Y - mean)), (2.0 * a**2 * squared, a * (squared - 1.0))
    left_out = []
    for m, v, (precision, slope) in zip((mean, h), (variance, of_h), sites, strict=True):
        left = np.maximum(1.0 - precision * v, _LEAST_LEFT)
        left_out.append((m - v * slope / left, v / left))
    return distribution_of(
        likelihood, X, *(np.concatenate(each, axis=-1) for each in zip(*left_out, strict=True))
    )


def _whitened(K: Array, C: Array) -> Array:
    """L⁻¹ C, for the Cholesky factor L of K."""
    return solve_triangular(np.linalg.cholesky(K), C, lower=True, check_finite=False)


def distribution_of(
    likelihood: Gaussian, X: Array, mean: Array, variance: Array, weights: Array | None = None
) -> PredictiveDistribution:
    """The distribution of observations, of functions with these moments.

    :param X: Inputs, [N, D].
    :param mean: Of the functions, [S, N, Q].
    :param variance: Of the functions, [S, N, Q], or [S, N] where they share it.
    :param weights: Of rows, [N], where they are observed as such: under a RowMeansGaussian.
    """
    if variance.ndim < 3:
        variance = np.broadcast_to(variance[..., None], mean.shape)
    moments = tuple(tf.constant(np.asarray(part)) for part in (mean, variance))
    if isinstance(likelihood, WarpedGaussian | NormalMixture):
        means, variances = (m.numpy() for m in warped_moments(likelihood, tf.constant(X), *moments))
    elif isinstance(likelihood, RowMeansGaussian) and weights is not None:
        means, variances = mean, variance + likelihood.noise_of(weights)
    else:
        means, variances = mean, variance + np.asarray(tf.convert_to_tensor(likelihood.variance))
    return PredictiveDistribution.of_components(likelihood, means, variances)
