"""Gaussian processes, fitted in seconds: what deeper models are held against, and start at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian
from gpflow.models import GPR, SGPR

from gpflow_dwp.likelihoods import WarpedGaussian

__all__ = ["GaussianProcessFit", "fit_gaussian_process"]

Array = npt.NDArray[np.float64]

_LEAST_GAIN = 0.1


class GaussianProcessFit(NamedTuple):
    """What came of a fit.

    :param elbo: The log marginal likelihood, or SGPR's bound of it, in nats.
    :param course: What is maximised, after each iteration, [T]: the same, with the log density of
        the parameters' priors.
    """

    elbo: float
    course: Array


def fit_gaussian_process(
    data: RegressionData,
    kernel: Kernel,
    likelihood: Gaussian,
    inducing_inputs: Array | None = None,
    *,
    max_iterations: int = 100,
) -> GaussianProcessFit:
    """Fit kernel, noise and warp by L-BFGS on the marginal likelihood; all are changed in place.

    :param data: Inputs [N, D] and observations [N, P].
    :param kernel: Where it starts.
    :param likelihood: Gaussian or :class:`~gpflow_dwp.likelihoods.WarpedGaussian`, with one noise
        variance.
    :param inducing_inputs: Z, [M, D], which stay; None for the exact process.
    :param max_iterations: Of L-BFGS.
    """
    data = tuple(tf.convert_to_tensor(part, gpflow.default_float()) for part in data)
    model: GPR | SGPR = (
        _WarpedGPR(data, kernel, likelihood=likelihood)
        if inducing_inputs is None
        else _WarpedSGPR(data, kernel, inducing_inputs, likelihood=likelihood)
    )
    if inducing_inputs is not None:
        gpflow.set_trainable(model.inducing_variable, False)
    variables = model.trainable_variables
    # A step may lead to a covariance that cannot be factorised: the one before it is kept.
    last = [variable.numpy() for variable in variables]

    def keep(_: int, __: Sequence[tf.Variable], values: Sequence[tf.Tensor]) -> None:
        last[:] = [value.numpy() for value in values]

    course = [-float(model.training_loss())]
    optimiser = gpflow.optimizers.Scipy()
    while len(course) <= max_iterations:
        begun_at = course[-1]
        try:
            result = optimiser.minimize(
                model.training_loss,
                variables,
                step_callback=keep,
                track_loss_history=True,
                options={"maxiter": max_iterations + 1 - len(course)},
                tf_fun_args={"autograph": False},
            )
            course.extend(-np.asarray(result.loss_history))
        except tf.errors.InvalidArgumentError:
            pass
        if not np.isfinite(model.training_loss()):
            for variable, value in zip(variables, last, strict=True):
                variable.assign(value)
        # Line searches fail now and then where gradients are inexact, and a new start helps.
        if not course[-1] > begun_at + _LEAST_GAIN:
            break
    elbo = float(model.maximum_log_likelihood_objective())
    return GaussianProcessFit(elbo, np.asarray(course[1:] or course))


class _WarpedGPR(GPR):
    """GPflow's GPR of targets that are warped as the likelihood has it."""

    @property
    def data(self) -> RegressionData:
        return _warped(self.likelihood, *self._rows)

    @data.setter
    def data(self, rows: RegressionData) -> None:
        self._rows = rows

    def log_marginal_likelihood(self) -> tf.Tensor:
        return super().log_marginal_likelihood() + _log_jacobian(self.likelihood, self._rows[1])


class _WarpedSGPR(SGPR):
    """GPflow's SGPR of targets that are warped as the likelihood has it."""

    @property
    def data(self) -> RegressionData:
        return _warped(self.likelihood, *self._rows)

    @data.setter
    def data(self, rows: RegressionData) -> None:
        self._rows = rows

    def elbo(self) -> tf.Tensor:
        return super().elbo() + _log_jacobian(self.likelihood, self._rows[1])


def _warped(likelihood: Gaussian, X: tf.Tensor, Y: tf.Tensor) -> RegressionData:
    return (X, likelihood.warp.forward(Y)) if isinstance(likelihood, WarpedGaussian) else (X, Y)


def _log_jacobian(likelihood: Gaussian, Y: tf.Tensor) -> tf.Tensor:
    if not isinstance(likelihood, WarpedGaussian):
        return tf.zeros([], Y.dtype)
    return tf.reduce_sum(likelihood.warp.log_derivative(Y))
