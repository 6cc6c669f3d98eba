"""Gaussian noise of rows that are means of several observations, or whose noise is known."""

from __future__ import annotations

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.likelihoods import Gaussian

from gpflow_dwp.base import Array, TrainingData

__all__ = ["RowMeansGaussian"]

# Of rows with known noise, by the variance of all observations: less is no noise to rely on.
_LEAST_VARIANCE = 1e-6


class RowMeansGaussian(Gaussian):
    r"""y ~ N(f, σ²), where a row of weight w is observed with the variance σ²/w.

    Of rows that are means of w observations at equal inputs nothing is lost: with s² their pooled
    variance, and m = Σ (w - 1) degrees of freedom,

    .. math:: \sum_n \sum_j \log p(y_{nj}) = \sum_n w_n \log \mathcal N(\bar y_n; f_n, \sigma^2)
              - \frac{m s^2}{2 \sigma^2}

    (Binois, Gramacy and Ludkovski, "Practical heteroscedastic Gaussian process modeling for large
    simulation experiments", 2018), so that N observations cost what their distinct inputs do. Where
    the noise of each row is known weights are σ² by its variance, and σ² stays as it is.

    Several outputs have a variance each, or one, and an s² each, whose terms are added.

    :param variance: σ², or where it starts, a number or [P].
    :param pooled_variance: s², of observations around the means of their rows, [P].
    :param num_pooled: m, the observations less the rows.
    :param constant: Added to the bound, in nats.
    :param is_known: Whether σ² is known, and not learned.
    """

    def __init__(
        self,
        variance: npt.ArrayLike = 1.0,
        pooled_variance: npt.ArrayLike = 0.0,
        num_pooled: float = 0.0,
        constant: float = 0.0,
        *,
        is_known: bool = False,
    ) -> None:
        super().__init__(variance, variance_lower_bound=0.1 * _LEAST_VARIANCE)
        self.pooled_variance = np.atleast_1d(np.asarray(pooled_variance, np.float64))
        self.num_pooled, self.constant, self.is_known = num_pooled, constant, is_known
        gpflow.set_trainable(self.variance, not is_known)

    def kl_divergence(self) -> tf.Tensor:
        """What the bound of rows has to lose for that of all observations, in nats, []."""
        variance = tf.convert_to_tensor(self.variance)
        squares = tf.cast(self.num_pooled * self.pooled_variance, variance.dtype)
        return 0.5 * tf.reduce_sum(squares / variance) - self.constant

    def starting_at(
        self, variance: npt.ArrayLike, outputs: slice = slice(None)
    ) -> RowMeansGaussian:
        """That of some outputs, whose variance starts there, if it is learned."""
        variance = np.asarray(self.variance) if self.is_known else variance
        pooled = self.pooled_variance[outputs]
        return RowMeansGaussian(
            variance, pooled, self.num_pooled, self.constant, is_known=self.is_known
        )

    def noise_of(self, weights: Array) -> Array:
        """Variance of rows with these weights, [N, P], or [N, 1] where outputs share it."""
        return np.asarray(self.variance) / weights[:, None]

    @classmethod
    def of_known(cls, variances: Array) -> tuple[RowMeansGaussian, Array]:
        """Return that of rows with known variances, and their weights, 1 on average, [N].

        :param variances: By the variance of all observations, [N]; at least 1e-6 each.
        """
        variances = np.maximum(variances, _LEAST_VARIANCE)
        variance = 1.0 / float(np.mean(1.0 / variances))
        weights = variance / variances
        spare = (weights - 1.0) * np.log(2.0 * np.pi * variance) + np.log(weights)
        return cls(variance, constant=0.5 * float(spare.sum()), is_known=True), weights

    @classmethod
    def of_replicates(cls, X: Array, Y: Array) -> tuple[RowMeansGaussian, TrainingData] | None:
        """Return that of means over equal inputs, and inputs, means and weights; None without.

        :param X: Inputs, [N, D].
        :param Y: Observations, [N, P].
        """
        inputs, row, counts = np.unique(X, axis=0, return_inverse=True, return_counts=True)
        num_pooled = len(X) - len(inputs)
        if not num_pooled:
            return None
        row = row.reshape(-1)
        sums = [np.bincount(row, column) for column in Y.T]
        means = np.stack(sums, axis=1) / counts[:, None]
        pooled = np.sum(np.square(Y - means[row]), axis=0) / num_pooled
        variance = np.maximum(pooled, _LEAST_VARIANCE)
        likelihood = cls(variance if len(pooled) > 1 else variance[0], pooled, float(num_pooled))
        return likelihood, (inputs, means, counts.astype(np.float64))
