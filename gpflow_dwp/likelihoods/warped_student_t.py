"""Student's t noise in an increasing function of the observations."""

from __future__ import annotations

import copy

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import inherit_check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.likelihoods import Gaussian
from gpflow.utilities import positive
from gpflow.utilities.parameter_or_function import ConstantOrFunction
from scipy.special import ndtr

from gpflow_dwp.likelihoods.sinh_arcsinh import SinhArcsinh
from gpflow_dwp.likelihoods.warped_gaussian import Warp, WarpedGaussian, unwarped_moments
from gpflow_dwp.validation import as_real_array

__all__ = ["WarpedStudentT"]

Rule = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

_LEAST_DF = 2.0
_SHARE = 0.6  # of the variance is that of Student's distribution with five degrees of freedom
# For moments and quantiles: a few nodes in the normal scores of λ.
_MOMENT_NODES: Rule = np.polynomial.hermite_e.hermegauss(16)  # type: ignore[no-untyped-call]


def _density_steps() -> Rule:
    """Nodes of log λ in units of √(2/ν), and the steps between them: 0.4, and 1 far below.

    Given an observation log λ is about as wide as that wherever it is: for outliers far below.
    """
    index = np.arange(-50.0, 19.0)
    below = 0.5 * (index + 18.0)
    return 0.4 * index - 1.2 * np.logaddexp(0.0, -below), 0.4 + 0.6 / (1.0 + np.exp(below))


_DENSITY_NODES, _DENSITY_STEPS = _density_steps()


class WarpedStudentT(WarpedGaussian):
    r"""g(y) = f + σ t, with t of Student's distribution and g increasing, learned with the model.

    A few observations may lie far from their functions, which under Gaussian noise they would bend,
    or widen the noise of all others. It is Gaussian noise of a random scale:

    .. math:: g(y) \mid f, \lambda \sim \mathcal N(f, \sigma^2/\lambda), \qquad
              \lambda \sim \operatorname{Gamma}(\nu/2, \nu/2)

    The expected log density under a Gaussian q(f) is replaced by its bound with the best Gamma
    posterior of each λ, which is Student's log density at E(g(y) - f)² (Tipping and Lawrence,
    "Variational inference for Student-t models", 2005). Predictive densities, means and variances
    are by quadrature over λ.

    >>> from gpflow_dwp.likelihoods import SinhArcsinh, WarpedStudentT
    >>> likelihood = WarpedStudentT(SinhArcsinh(), variance=0.01, df=4.0)
    >>> round(float(likelihood.df.numpy()), 6)
    4.0

    :param warp: The increasing function g in which the noise is Gaussian.
    :param variance: σ², or a function of the inputs; as for GPflow's Gaussian.
    :param df: Where ν starts, above 2.
    :param scale: Standard deviation of the noise, σ, in place of ``variance``.
    :param variance_lower_bound: Lower bound of the noise variance σ².
    :raises ValueError: If ``warp`` is no :class:`Warp`, or ``df`` not above 2.
    """

    def __init__(
        self,
        warp: Warp,
        variance: ConstantOrFunction | None = None,
        df: float | tf.Tensor = 5.0,
        *,
        scale: ConstantOrFunction | None = None,
        variance_lower_bound: float | None = None,
    ) -> None:
        super().__init__(warp, variance, scale=scale, variance_lower_bound=variance_lower_bound)
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

    def component_weights(self, dtype: tf.DType) -> tf.Tensor:
        """Return the weights of the nodes of λ, a quadrature of its distribution, [K]."""
        return self._nodes(dtype)[1]

    def log_precision_factor(self, precisions: tf.Tensor) -> tf.Tensor:
        r"""Return ½ E log λ - KL(q(λ), p(λ)), of the best Gamma q(λ) with a given mean.

        With it, ½ log(1/2πσ²) - ½ w E(g(y) - f)²/σ² is the bound of the expected log density for
        the mean w; at w = (ν + 1)/(ν + E(g(y) - f)²/σ²) it is highest.

        :param precisions: Precision of each observation, w, of any shape.
        """
        df = tf.cast(self.df, precisions.dtype)
        half, shape = 0.5 * df, 0.5 * (df + 1.0)
        constant = tf.math.lgamma(shape) - tf.math.lgamma(half)
        constant += half * tf.math.log(half) - shape * tf.math.log(shape) + shape
        return shape * tf.math.log(precisions) - half * precisions + constant

    def warped_mean_and_variance(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        """Return mean and variance of g(y), [..., P] each.

        Parameters as for :meth:`WarpedGaussian.warped_mean_and_variance`.
        """
        df = tf.cast(self.df, Fmu.dtype)
        return tf.identity(Fmu), Fvar + self._scale_squared(X, Fmu) * df / (df - 2.0)

    def warped_components(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return mean and variance of g(y) given each node of λ, [K, ..., P] each."""
        precisions, _ = self._nodes(Fmu.dtype)
        noise = self._scale_squared(X, Fmu)
        variances = tf.stack([Fvar + noise / each for each in tf.unstack(precisions)])
        return tf.broadcast_to(Fmu, tf.shape(variances)), variances

    @inherit_check_shapes
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        distance = tf.square(self.warp.forward(Y) - F)
        return self._log_density(X, F, distance) + self.warp.log_derivative(Y)

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        distance = tf.square(self.warp.forward(Y) - Fmu) + Fvar
        bound = self._log_density(X, Fmu, distance) + self.warp.log_derivative(Y)
        return tf.reduce_sum(bound, axis=-1)

    @inherit_check_shapes
    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        precisions, log_weights = self._density_nodes(Fmu.dtype)
        variances = Fvar[..., None] + self._scale_squared(X, Fmu)[..., None] / precisions
        distance = tf.square(self.warp.forward(Y) - Fmu)[..., None]
        each = -0.5 * (tf.math.log(2.0 * np.pi * variances) + distance / variances)
        density = tf.reduce_logsumexp(each + log_weights, axis=-1)
        return tf.reduce_sum(density + self.warp.log_derivative(Y), axis=-1)

    @inherit_check_shapes
    def _predict_mean_and_var(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        weights = self.component_weights(Fmu.dtype)
        means, variances = unwarped_moments(self.warp, *self.warped_components(X, Fmu, Fvar))
        mean = tf.tensordot(weights, means, 1)
        return mean, tf.tensordot(weights, variances + tf.square(means - mean), 1)

    def _scale_squared(self, X: TensorType, F: TensorType) -> tf.Tensor:
        """σ², in the shape of ``F``."""
        return super().warped_mean_and_variance(X, F, tf.zeros_like(F))[1]

    def _log_density(self, X: TensorType, F: TensorType, distance: tf.Tensor) -> tf.Tensor:
        """Student's log density of a number whose squared distance from the centre is given."""
        df, noise = tf.cast(self.df, F.dtype), self._scale_squared(X, F)
        constant = tf.math.lgamma(0.5 * (df + 1.0)) - tf.math.lgamma(0.5 * df)
        constant -= 0.5 * tf.math.log(np.pi * df * noise)
        return constant - 0.5 * (df + 1.0) * tf.math.log1p(distance / (df * noise))

    def _nodes(self, dtype: tf.DType) -> tuple[tf.Tensor, tf.Tensor]:
        """λ and weights of a rule in the normal scores of λ."""
        scores, weights = _MOMENT_NODES
        half = 0.5 * tf.cast(self.df, tf.float64)
        precisions = tfp.math.igammainv(half, tf.constant(ndtr(scores), tf.float64)) / half
        return tf.cast(precisions, dtype), tf.constant(weights / weights.sum(), dtype)

    def _density_nodes(self, dtype: tf.DType) -> tuple[tf.Tensor, tf.Tensor]:
        """λ and logarithms of weights of a rule in log λ."""
        df = tf.cast(self.df, tf.float64)
        logs = tf.sqrt(2.0 / df) * _DENSITY_NODES
        log_weights = np.log(_DENSITY_STEPS) - 0.5 * df * (tf.math.expm1(logs) - logs)
        return tf.cast(tf.exp(logs), dtype), tf.cast(tf.nn.log_softmax(log_weights), dtype)
