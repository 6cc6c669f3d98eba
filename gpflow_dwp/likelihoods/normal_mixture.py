"""What likelihoods have in common whose density is a mixture of normals."""

from __future__ import annotations

import abc
import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.base import MeanAndVariance, TensorType
from gpflow.likelihoods import Likelihood

from gpflow_dwp.likelihoods.warped_gaussian import warp_of

__all__ = ["NormalMixture", "gamma_nodes", "student_log_density"]

# Of log λ, in units of √(2/(ν + 1)): about how wide its distribution is, also given an observation.
_STEP, _LOWEST, _HIGHEST = 0.7, -66, 9


class NormalMixture(Likelihood, abc.ABC):
    """A likelihood under which y, or a warp of it, is normal given one of K nodes.

    Densities of models and of :class:`~gpflow_dwp.evaluation.PredictiveDistribution` are both sums
    over the nodes.
    """

    columns_share_nodes: ClassVar[bool] = False
    """Whether the columns of a row have one node together, or each one of its own."""

    @abc.abstractmethod
    def warped_components(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        """Return mean and variance of the K normals at each point, [K, ..., P] each.

        :param X: Inputs, [..., D].
        :param Fmu: Mean of the functions, [..., Q].
        :param Fvar: Variance of the functions, [..., Q].
        """

    @abc.abstractmethod
    def log_component_weights(self) -> tf.Tensor:
        """Return logarithms of their weights, which sum to 1, [K], in float64."""

    def component_weights(self, num_components: int) -> npt.NDArray[np.float64]:
        """Return the weights of K S components, of S draws given each node, [K S].

        :param num_components: K S; those of the first node come first.
        """
        weights = tf.exp(self.log_component_weights()).numpy()
        return np.repeat(weights, num_components // len(weights)) * len(weights) / num_components

    def _conditional_mean(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return self._predict_mean_and_var(X, F, tf.zeros_like(F))[0]

    def _conditional_variance(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return self._predict_mean_and_var(X, F, tf.zeros_like(F))[1]

    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        warp, slopes = warp_of(self), 0.0
        if warp is not None:
            Y, slopes = warp.forward(Y), tf.reduce_sum(warp.log_derivative(Y), axis=-1)
        means, variances = self.warped_components(X, Fmu, Fvar)
        log_variances = tf.math.log((2.0 * math.pi) * variances)
        each = -0.5 * (log_variances + tf.square(Y - means) / variances)
        if self.columns_share_nodes:
            each = tf.reduce_sum(each, axis=-1, keepdims=True)
        log_weights = tf.cast(self.log_component_weights(), each.dtype)
        log_weights = tf.reshape(log_weights, [-1] + [1] * (each.shape.rank - 1))
        return tf.reduce_sum(tf.reduce_logsumexp(each + log_weights, axis=0), axis=-1) + slopes


def gamma_nodes(df: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return K values of λ ~ Gamma(ν/2, ν/2) and the logarithms of their weights, in float64.

    The trapezoidal rule in log λ. For ν of at least 2, densities at z deviations are off by less
    than 3e-6 nats where log(1 + z²/ν) is below 40 √(2/(ν + 1)): to z = 1e6 at ν = 3, 800 at 30 and
    70 beyond. The smallest node stands for all those of the rule that are below it, where the
    density is a power of λ: it has the sum of their weights, and that of their 1/λ.

    :param df: Degrees of freedom, ν, [].
    """
    df = tf.cast(df, tf.float64)
    step = _STEP * tf.sqrt(2.0 / (df + 1.0))
    indices = np.arange(_LOWEST, _HIGHEST + 1.0)
    logs = step * indices
    log_weights = 0.5 * df * (logs - tf.exp(logs))
    # Geometric series; that of 1/λ has no limit where ν is at most 2.
    mass = -1.0 / tf.math.expm1(-0.5 * df * step)
    inverse = -1.0 / tf.math.expm1(-tf.maximum(0.5 * df - 1.0, 1e-9) * step)
    of_lowest = np.where(indices == _LOWEST, 1.0, 0.0)
    log_weights += tf.math.log(mass) * of_lowest
    logs += tf.math.log(mass / inverse) * of_lowest
    return tf.exp(logs), tf.nn.log_softmax(log_weights)


def student_log_density(
    df: tf.Tensor, scale_squared: tf.Tensor, squares: tf.Tensor, num_columns: int = 1
) -> tf.Tensor:
    """Return the log density of P numbers that are jointly Student's t.

    :param df: Degrees of freedom, ν, [].
    :param scale_squared: Their common scale, squared, of a shape that broadcasts.
    :param squares: Their squared distances from the centre, summed.
    :param num_columns: How many numbers, P.
    """
    half, rate = 0.5 * tf.cast(df, tf.float64), df * scale_squared
    shape = half + 0.5 * num_columns
    # In float32 the difference of those of many degrees of freedom would be lost.
    constant = tf.cast(tf.math.lgamma(shape) - tf.math.lgamma(half), df.dtype)
    constant -= 0.5 * num_columns * tf.math.log(math.pi * rate)
    return constant - tf.cast(shape, df.dtype) * tf.math.log1p(squares / rate)
