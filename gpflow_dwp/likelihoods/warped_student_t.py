"""Student's t noise in an increasing function of the observations."""

from __future__ import annotations

import copy

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import MeanAndVariance, TensorType
from gpflow.likelihoods import Gaussian
from gpflow.utilities import positive
from gpflow.utilities.parameter_or_function import ConstantOrFunction

from gpflow_dwp.base import Seed
from gpflow_dwp.likelihoods.normal_mixture import NormalMixture, gamma_nodes, student_log_density
from gpflow_dwp.likelihoods.observed import draw_student
from gpflow_dwp.likelihoods.sinh_arcsinh import SinhArcsinh
from gpflow_dwp.likelihoods.warped_gaussian import (
    ObservedWarp,
    Warp,
    WarpedGaussian,
    unwarped_moments,
)
from gpflow_dwp.validation import as_real_array

__all__ = ["WarpedStudentT"]

_LEAST_DF = 2.0
_SHARE = 0.6  # of the variance is that of Student's distribution with five degrees of freedom


class WarpedStudentT(NormalMixture, WarpedGaussian):
    r"""g(y) = f + σ t, with t of Student's distribution and g increasing, learned with the model.

    A few observations may lie far from their functions, which under Gaussian noise they would bend,
    or widen the noise of all others. It is Gaussian noise of a random scale:

    .. math:: g(y) \mid f, \lambda \sim \mathcal N(f, \sigma^2/\lambda), \qquad
              \lambda \sim \operatorname{Gamma}(\nu/2, \nu/2)

    The expected log density under a Gaussian q(f) is replaced by its bound with the best Gamma
    posterior of each λ, which is Student's log density at E(g(y) - f)² (Tipping and Lawrence,
    "Variational inference for Student-t models", 2005).

    >>> from gpflow_dwp.likelihoods import SinhArcsinh, WarpedStudentT
    >>> likelihood = WarpedStudentT(SinhArcsinh(), variance=0.01, df=4.0)
    >>> round(float(likelihood.df.numpy()), 6)
    4.0

    :param warp: The increasing function g in which the noise is Gaussian.
    :param variance: σ², or a function of the inputs; as for GPflow's Gaussian.
    :param df: Where ν starts, above 2.
    :raises ValueError: If ``warp`` is no :class:`Warp`, or ``df`` not above 2.
    """

    def __init__(
        self, warp: Warp, variance: ConstantOrFunction | None = None, df: float | tf.Tensor = 5.0
    ) -> None:
        super().__init__(warp, variance)
        number = as_real_array("df", df)
        if number.ndim or not _LEAST_DF < number < np.inf:
            raise ValueError(f"df must be a number above {_LEAST_DF:g}, got {df!r}.")
        self.df = gpflow.Parameter(df, transform=positive(_LEAST_DF, base="exp"))

    @classmethod
    def of(cls, likelihood: Gaussian) -> WarpedStudentT:
        """Start at Gaussian noise: of its width where it matters, with five degrees of freedom.

        :param likelihood: With noise that is the same everywhere. Its warp is copied; without one
            the new warp is the identity, and stays.
        """
        given = likelihood.variance
        given = tf.square(likelihood.scale) if given is None else tf.convert_to_tensor(given)
        floor = 2.0 * likelihood.variance_lower_bound  # at the bound itself no parameter starts
        variance = np.maximum(_SHARE * np.atleast_1d(given.numpy()), floor)
        if isinstance(likelihood, WarpedGaussian):
            warp = copy.deepcopy(likelihood.warp)
        else:
            warp = SinhArcsinh(len(variance))
            gpflow.set_trainable(warp, False)
        return cls(warp, variance if len(variance) > 1 else variance[0])

    def log_component_weights(self) -> tf.Tensor:
        return gamma_nodes(self.df)[1]

    def warped_mean_and_variance(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        df = tf.cast(self.df, Fmu.dtype)
        return tf.identity(Fmu), Fvar + self._scale_squared(X, Fmu) * df / (df - 2.0)

    def warped_components(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> tuple[tf.Tensor, tf.Tensor]:
        precisions, noise = gamma_nodes(self.df)[0], self._scale_squared(X, Fmu)
        precisions = tf.reshape(tf.cast(precisions, noise.dtype), [-1] + [1] * len(noise.shape))
        variances = Fvar + noise / precisions
        return tf.broadcast_to(Fmu, tf.shape(variances)), variances

    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return self._bound(X, F, Y, tf.zeros_like(F))

    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        return tf.reduce_sum(self._bound(X, Fmu, Y, Fvar), axis=-1)

    @tf.autograph.experimental.do_not_convert
    def _predict_mean_and_var(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        # One node after the other: each has a quadrature of its own.
        means, variances = tf.map_fn(
            lambda moments: unwarped_moments(self.warp, *moments),
            self.warped_components(X, Fmu, Fvar),
        )
        weights = tf.cast(tf.exp(self.log_component_weights()), Fmu.dtype)
        mean = tf.tensordot(weights, means, 1)
        return mean, tf.tensordot(weights, variances + tf.square(means - mean), 1)

    def _scale_squared(self, X: TensorType, F: TensorType) -> tf.Tensor:
        """σ², in the shape of ``F``."""
        return super().warped_mean_and_variance(X, F, tf.zeros_like(F))[1]

    def _bound(self, X: TensorType, Fmu: TensorType, Y: TensorType, Fvar: TensorType) -> tf.Tensor:
        """That of each expected log density, [..., P]: it is exact where f is known."""
        squares = tf.square(self.warp.forward(Y) - Fmu) + Fvar
        df, noise = tf.cast(self.df, Fmu.dtype), self._scale_squared(X, Fmu)
        return student_log_density(df, noise, squares) + self.warp.log_derivative(Y)


class _Observed(ObservedWarp, of=[WarpedStudentT]):
    def sample(self, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
        df = tf.cast(self.likelihood.df, F.dtype)
        scale = tf.sqrt(self.likelihood.warped_mean_and_variance(X, F, tf.zeros_like(F))[1])
        noise = scale * tf.sqrt((df - 2.0) / df) * draw_student(F, df, seed)
        return self.likelihood.warp.inverse(F + noise)
