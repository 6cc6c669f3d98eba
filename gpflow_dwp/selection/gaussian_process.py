"""Gaussian processes, fitted in seconds: what deeper models are held against, and start at."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import gpflow
import numpy as np
import scipy.optimize
import tensorflow as tf
from gpflow import default_float
from gpflow.base import RegressionData
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian
from gpflow.models import GPR, SGPR
from gpflow.optimizers import Scipy
from gpflow.utilities import positive

from gpflow_dwp.base import Array, TrainingData
from gpflow_dwp.data.table import as_weighted
from gpflow_dwp.likelihoods import WarpedStudentT
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.selection.evidence import Evidence, has_closed_form

__all__ = ["GaussianProcessFit", "fit_gaussian_process"]

_LEAST_GAIN = 0.1
_NATS_OF_FAILURE = 100.0


class GaussianProcessFit(NamedTuple):
    """What came of a fit.

    :param elbo: The log marginal likelihood, or SGPR's bound of it, in nats. Minus infinity where
        the noise is less than what the covariance is rounded by: what came is no fit then.
    :param trace: What is maximised, after each iteration, [T]: the same, with the log density of
        the parameters' priors.
    :param precisions: Of a :class:`~gpflow_dwp.likelihoods.WarpedStudentT`, the factor of each
        row's precision, [N]; else None.
    """

    elbo: float
    trace: Array
    precisions: Array | None = None


def fit_gaussian_process(
    data: TrainingData,
    kernel: Kernel,
    likelihood: Gaussian,
    inducing_inputs: Array | None = None,
    *,
    precisions: Array | None = None,
    steps: Array | None = None,
    jitter: float = 0.0,
    max_iterations: int = 100,
) -> GaussianProcessFit:
    """Fit kernel, noise and warp by L-BFGS on the marginal likelihood; all are changed in place.

    :param data: Inputs [N, D] and observations [N, P], and weights [N] if there are any.
    :param kernel: Where it starts.
    :param likelihood: Gaussian, :class:`~gpflow_dwp.likelihoods.WarpedGaussian` or
        :class:`~gpflow_dwp.likelihoods.WarpedStudentT`, with one noise variance. Of the last one
        the bound is that of :class:`~gpflow_dwp.layers.RegressionGPLayer` with precisions.
    :param inducing_inputs: Inducing inputs, Z, [M, D], which stay; None for the exact process.
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
    if inducing_inputs is None and has_closed_form(kernel, likelihood):
        rows, seen, counts = (np.asarray(part[counted], np.float64) for part in (X, Y, weights))
        of_rows = precisions[counted] if isinstance(likelihood, WarpedStudentT) else None
        fitted = _fit_closed_form(
            Evidence(rows, seen, counts, steps, kernel, likelihood, of_rows, jitter), max_iterations
        )
        if fitted.precisions is not None:
            precisions[counted] = fitted.precisions
            fitted = fitted._replace(precisions=precisions)
        return fitted
    X, Y, weights = (
        tf.convert_to_tensor(part[counted], default_float()) for part in (X, Y, weights)
    )
    noise: _RowNoise = _RowNoise(likelihood, weights, steps)
    if isinstance(likelihood, WarpedStudentT):
        noise = _StudentRowNoise(likelihood, weights, steps, precisions[counted])
    model: GPR | SGPR = (
        _WarpedGPR((X, Y), kernel, likelihood=noise)
        if inducing_inputs is None
        else _WarpedSGPR((X, Y), kernel, inducing_inputs, likelihood=noise)
    )
    model.jitter = jitter
    if inducing_inputs is not None:
        gpflow.set_trainable(model.inducing_variable, False)
    trace = _maximise(model, max_iterations)
    elbo = float(model.maximum_log_likelihood_objective())
    rounding = np.finfo(np.float64).eps * np.sum(kernel(X, full_cov=False))
    if not (np.isfinite(elbo) and np.min(noise.variance_at(X)) > rounding):
        elbo = -np.inf
    found = np.asarray(trace[1:] or trace)
    if not isinstance(noise, _StudentRowNoise):
        return GaussianProcessFit(elbo, found)
    precisions[counted] = noise.precisions.numpy()
    return GaussianProcessFit(elbo, found, precisions)


def _fit_closed_form(evidence: Evidence, max_iterations: int) -> GaussianProcessFit:
    """Maximise by L-BFGS, again from where it stops for as long as it gains."""
    best = evidence.start()
    best_value, _ = evidence(best)
    trace = [best_value]

    def loss(vector: Array) -> tuple[float, Array]:
        nonlocal best, best_value
        value, gradient = evidence(vector)
        if not np.isfinite(value):
            # Not far above, or the line search would interpolate to no step at all.
            return -best_value + _NATS_OF_FAILURE, np.zeros_like(vector)
        if value > best_value:
            best, best_value = vector.copy(), value
        return -value, -gradient

    while np.isfinite(best_value) and len(trace) <= max_iterations:
        begun_at, begun_with = best_value, len(trace)
        scipy.optimize.minimize(
            loss,
            best,
            jac=True,
            method="L-BFGS-B",
            bounds=evidence.limits(),
            callback=lambda _: trace.append(best_value),
            options={"maxiter": max_iterations + 1 - len(trace)},
        )
        if not best_value > begun_at + _LEAST_GAIN or len(trace) == begun_with:
            break
    evidence.assign(best)
    elbo = best_value - evidence.log_prior(best)
    return GaussianProcessFit(elbo, np.asarray(trace[1:] or trace), evidence.precisions)


def _maximise(model: GPR | SGPR, max_iterations: int) -> list[float]:
    """Maximise a model's evidence by L-BFGS, and return its trace, from the start on.

    The model ends at the best state that was met. A line search may lead to where nothing can be
    factorised, or fail because gradients are inexact: it begins anew then, for as long as it gains.
    """
    variables = model.trainable_variables

    @tf.function(autograph=False)
    def differentiate() -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = model.training_loss()
        return loss, Scipy.pack_tensors(tape.gradient(loss, variables))

    def assign(values: Array) -> None:
        Scipy.assign_tensors(variables, Scipy.unpack_tensors(variables, values))

    best_loss, best = np.inf, Scipy.pack_tensors(variables).numpy()

    def evaluate(values: Array) -> tuple[float, Array]:
        nonlocal best_loss, best
        assign(values)
        loss, gradient = (np.asarray(part, np.float64) for part in differentiate())
        if not (np.isfinite(loss) and np.isfinite(gradient).all()):
            raise FloatingPointError
        if loss < best_loss:
            best_loss, best = float(loss), values.copy()
        return float(loss), gradient

    try:
        trace = [-evaluate(best)[0]]
    except (FloatingPointError, tf.errors.InvalidArgumentError):
        return [-np.inf]
    while len(trace) <= max_iterations:
        begun_at = -best_loss
        with contextlib.suppress(FloatingPointError, tf.errors.InvalidArgumentError):
            scipy.optimize.minimize(
                evaluate,
                best,
                jac=True,
                method="L-BFGS-B",
                callback=lambda _: trace.append(-best_loss),
                options={"maxiter": max_iterations + 1 - len(trace)},
            )
        if not -best_loss > begun_at + _LEAST_GAIN:
            break
    assign(best)
    return trace


class _RowNoise(gpflow.Module):
    """Noise of rows of which each counts w times: σ²/w, and what its density lacks.

    p(y | f)^w is N(g(y); f, σ²/w) times a factor without f, g being the likelihood's warp.
    """

    def __init__(self, likelihood: Gaussian, weights: tf.Tensor, steps: Array) -> None:
        super().__init__()
        self.likelihood = likelihood
        self.weights = weights[:, None]
        self.steps = steps

    def variance_at(self, X: tf.Tensor) -> tf.Tensor:
        return self.likelihood.variance_at(X) / self.weights

    def warped(self, Y: tf.Tensor) -> tf.Tensor:
        warp = warp_of(self.likelihood)
        return Y if warp is None else warp.forward(Y)

    def log_factor(self, X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        log_variance = tf.math.log(2.0 * np.pi * self.likelihood.variance_at(X))
        factors = 0.5 * ((1.0 - self.weights) * log_variance - tf.math.log(self.weights))
        factors += self.weights * self._log_jacobian(Y)
        return tf.reduce_sum(tf.broadcast_to(factors, tf.shape(Y)))

    def _log_jacobian(self, Y: tf.Tensor) -> tf.Tensor:
        """The logarithm of the slope, or of a cell's width by its step: see :class:`Evidence`."""
        warp, steps = warp_of(self.likelihood), self.steps
        slope = tf.zeros_like(Y) if warp is None else warp.log_derivative(Y)
        if not np.any(steps):
            return slope
        h = tf.constant(np.where(steps > 0.0, steps, 1.0), Y.dtype) + tf.zeros_like(Y)
        width = h if warp is None else warp.forward(Y + 0.5 * h) - warp.forward(Y - 0.5 * h)
        ratio = tf.square(width) / (12.0 * tf.convert_to_tensor(self.likelihood.variance))
        return tf.where(steps > 0.0, tf.math.log(width / h) - 0.5 * tf.math.log1p(ratio), slope)


class _StudentRowNoise(_RowNoise):
    """Student's noise: a row's precision is λ/σ², of which E λ is learned, and counts w times.

    The bound of p(y | f)^w for the best Gamma q(λ) is N(g(y); f, σ²/(w E λ)) times a factor.
    """

    likelihood: WarpedStudentT

    def __init__(
        self, likelihood: WarpedStudentT, weights: tf.Tensor, steps: Array, precisions: Array
    ) -> None:
        super().__init__(likelihood, weights, steps)
        self.precisions = gpflow.Parameter(precisions, transform=positive(base="exp"))

    def variance_at(self, X: tf.Tensor) -> tf.Tensor:
        return super().variance_at(X) / self.precisions[:, None]

    def log_factor(self, X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        precisions = tf.convert_to_tensor(self.precisions)[:, None]
        factors = self.weights * self.likelihood.log_precision_factor(precisions)
        factors -= 0.5 * tf.math.log(precisions)
        return super().log_factor(X, Y) + tf.reduce_sum(tf.broadcast_to(factors, tf.shape(Y)))


class _OfWarpedTargets:
    """A regression of GPflow's on targets that are warped as its likelihood has it."""

    likelihood: _RowNoise
    kernel: Kernel
    jitter = 0.0

    @property
    def data(self) -> RegressionData:
        X, Y = self._rows
        return X, self.likelihood.warped(Y)

    @data.setter
    def data(self, rows: RegressionData) -> None:
        self._rows = rows

    def _of_rows(self) -> tf.Tensor:
        """What a layer's bound has beside this evidence: the warp's Jacobian, and -tr(K - Q) / 2σ².

        Q is K less the jitter j, as K (K + j I)⁻¹ K is, but where eigenvalues of K are less than j.
        """
        X, Y = self._rows
        jitter = self.jitter * tf.reduce_mean(self.kernel(X, full_cov=False))
        precisions = tf.broadcast_to(1.0 / self.likelihood.variance_at(X), tf.shape(Y))
        return self.likelihood.log_factor(X, Y) - 0.5 * jitter * tf.reduce_sum(precisions)


class _WarpedGPR(_OfWarpedTargets, GPR):
    def log_marginal_likelihood(self) -> tf.Tensor:
        return super().log_marginal_likelihood() + self._of_rows()


class _WarpedSGPR(_OfWarpedTargets, SGPR):
    def elbo(self) -> tf.Tensor:
        return super().elbo() + self._of_rows()
