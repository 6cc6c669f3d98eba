"""Gaussian processes, fitted in seconds by L-BFGS, and where fits start."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import scipy.optimize
import tensorflow as tf
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian

from gpflow_dwp.base import Array, TrainingData
from gpflow_dwp.gaussian_process.covariances import covariance
from gpflow_dwp.gaussian_process.evidence import Evidence
from gpflow_dwp.gaussian_process.kernel_shapes import Covariances
from gpflow_dwp.kernels.values import Parts
from gpflow_dwp.likelihoods import WarpedStudentT
from gpflow_dwp.neighbours import Index
from gpflow_dwp.validation import as_weighted

__all__ = ["GaussianProcessFit", "find_peaks", "fit_gaussian_process"]

# Nats in so many evaluations: with less a fit to more rows than these has ended.
_LEAST_GAIN, _WINDOW, _FEW_ROWS = 0.1, 10, 250
_NATS_OF_FAILURE = 100.0


class GaussianProcessFit(NamedTuple):
    """What came of a fit.

    :param elbo: The log marginal likelihood, or SGPR's bound of it, in nats. Minus infinity where
        the noise is less than what the covariance is rounded by: what came is no fit then.
    :param trace: What is maximised, after each iteration, [T]: the same, with the log density of
        the parameters' priors.
    :param log_prior: The log density of the parameters, up to a constant.
    :param kernel: The kernel, as it was given: GPflow's, or values.
    :param precisions: Of a :class:`~gpflow_dwp.likelihoods.WarpedStudentT`, the factor of each
        row's precision, [N]; else None.
    """

    elbo: float
    trace: Array
    log_prior: float
    kernel: Kernel | Parts
    precisions: Array | None = None


class _Peak(NamedTuple):
    """A place where the evidence is higher than at neighbouring lengthscales.

    :param nats: The evidence, up to a constant.
    :param scale: By what lengthscales are multiplied.
    :param signal: The variance of the signal.
    :param ratio: That of the noise by it.
    """

    nats: float
    scale: float
    signal: float
    ratio: float


def find_peaks(
    covariances: Covariances,
    Y: Array,
    weights: Array,
    scales: Array,
    ratios: Array,
    pooled: float = 0.0,
) -> list[_Peak]:
    """Find peaks over lengthscales that are scaled by one factor, highest first.

    For a scale and a ratio ρ of noise to signal, with W^½ K W^½ = U diag(s) Uᵀ, the best signal
    variance is the sum of (Uᵀ W^½ y)²/(s + ρ) by that of the weights.

    :param covariances: Of the inputs with themselves.
    :param Y: Observations, [N, P].
    :param weights: How often each row counts, w, [N].
    :param scales: Factors, ascending.
    :param ratios: ρ that are tried; of those that explain as much the first is taken.
    :param pooled: Of rows that are means the variance of observations around these, summed over
        outputs.
    """
    roots, total, P = np.sqrt(weights), weights.sum(), Y.shape[1]
    spare = total - len(Y)
    Y = Y * roots[:, None]
    vector, profile = covariances.start(), []
    for scale in scales:
        K, _ = covariances.blocks(vector + np.log(scale) * covariances.scanned)
        values, vectors = np.linalg.eigh(roots[:, None] * K * roots)
        spectrum = np.maximum(values, 0.0)[:, None] + ratios
        explained = np.square(vectors.T @ Y)[:, None] / spectrum[..., None]
        signal = (np.sum(explained, axis=(0, 2)) + spare * pooled / ratios) / (total * P)
        nats = total * np.log(signal) + np.log(spectrum).sum(0) + spare * np.log(ratios)
        nats *= -0.5 * P
        best = nats.argmax()
        profile.append(_Peak(nats[best], scale, signal[best], ratios[best]))
    nats = np.array([each.nats for each in profile])
    padded = np.concatenate([[-np.inf], nats, [-np.inf]])
    peaks = np.flatnonzero((nats >= padded[:-2]) & (nats >= padded[2:]))
    return [profile[peak] for peak in sorted(peaks, key=lambda peak: -nats[peak])]


def fit_gaussian_process(
    data: TrainingData,
    kernel: Kernel | Parts,
    likelihood: Gaussian,
    inducing_inputs: Array | None = None,
    *,
    neighbours: Index | None = None,
    precisions: Array | None = None,
    steps: Array | None = None,
    jitter: float = 0.0,
    max_iterations: int = 100,
) -> GaussianProcessFit:
    """Fit kernel, noise and warp by L-BFGS on the marginal likelihood.

    All but values are changed in place.

    :param data: Inputs [N, D] and observations [N, P], and weights [N] if there are any.
    :param kernel: Where it starts.
    :param likelihood: Gaussian, :class:`~gpflow_dwp.likelihoods.WarpedGaussian` or
        :class:`~gpflow_dwp.likelihoods.WarpedStudentT`, with one noise variance. Of the last one
        the bound is that of :class:`~gpflow_dwp.layers.RegressionGPLayer` with precisions.
    :param inducing_inputs: Inducing inputs, Z, [M, D], which stay; None for the exact process.
    :param neighbours: As for :class:`Evidence`, of rows that all count: the density of some rows,
        each given a few others.
    :param precisions: Where those of a :class:`~gpflow_dwp.likelihoods.WarpedStudentT` start, [N];
        None for 1.
    :param steps: To which each column was recorded, [P]: see :class:`Evidence`; None for 0.
    :param jitter: Of the layer that this stands for, relative to the covariance's mean diagonal.
        What it takes from the layer's bound is taken from what is maximised, else noise could be
        less than the jitter.
    :param max_iterations: Most iterations of L-BFGS.
    """
    X, Y, weights = as_weighted(data)
    weights = np.ones(len(X)) if weights is None else np.asarray(weights)
    precisions = np.ones(len(X)) if precisions is None else precisions.copy()
    # A row of no weight is one of infinite noise.
    counted = weights > 0.0
    steps = np.zeros(np.shape(Y)[1]) if steps is None else steps
    rows, seen, counts, factors = (
        np.asarray(part[counted], np.float64) for part in (X, Y, weights, precisions)
    )
    evidence = Evidence(
        rows, seen, counts, steps, kernel, likelihood, factors, jitter, inducing_inputs, neighbours
    )
    found, trace = _maximise(evidence, max_iterations)
    evidence.assign(found)
    log_prior = evidence.log_prior(found)
    elbo = trace[-1] - log_prior
    joint = evidence.X if neighbours is None else evidence.X[: neighbours.shape[1]]
    variances = covariance(evidence.kernel, joint[:, None])
    rounding = np.finfo(np.float64).eps * variances.sum()
    noise = float(np.max(tf.convert_to_tensor(likelihood.variance)))
    if not noise / counts.max() > rounding:
        elbo = -np.inf
    precisions[counted] = evidence.precisions
    own = precisions if isinstance(likelihood, WarpedStudentT) else None
    return GaussianProcessFit(elbo, np.asarray(trace[1:] or trace), log_prior, evidence.kernel, own)


class _EndedError(Exception):
    """A fit has ended, in the midst of a line search."""


def _maximise(evidence: Evidence, max_iterations: int) -> tuple[Array, list[float]]:
    """Maximise by L-BFGS, again from where it stops for as long as it gains; best and trace."""
    best = evidence.start()
    best_value, _ = evidence(best)
    trace, seen = [best_value], [best_value]
    window = _WINDOW if len(evidence.X) > _FEW_ROWS else sys.maxsize

    def loss(vector: Array) -> tuple[float, Array]:
        nonlocal best, best_value
        if len(seen) > window and best_value < seen[-1 - window] + _LEAST_GAIN:
            raise _EndedError
        value, gradient = evidence(vector)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            # Not far above, or the line search would interpolate to no step at all.
            return -best_value + _NATS_OF_FAILURE, np.zeros_like(vector)
        if value > best_value:
            best, best_value = vector.copy(), value
        seen.append(best_value)
        return -value, -gradient

    while np.isfinite(best_value) and len(trace) <= max_iterations:
        begun_at, begun_with = best_value, len(trace)
        try:
            scipy.optimize.minimize(
                loss,
                best,
                jac=True,
                method="L-BFGS-B",
                bounds=evidence.limits(),
                callback=lambda _: trace.append(best_value),
                options={"maxiter": max_iterations + 1 - len(trace)},
            )
        except _EndedError:
            break
        if not best_value > begun_at + _LEAST_GAIN or len(trace) == begun_with:
            break
    return best, [*trace, best_value] if best_value > trace[-1] else trace
