"""Gaussians whose covariance is a few factors plus a diagonal."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp.random import as_seed, normal, split_seed
from gpflow_dwp.validation import check_integers

__all__ = ["FactorModel"]


class FactorModel(NamedTuple):
    """The Gaussian of c + F h + ε, where h ~ N(0, I) and ε ~ N(0, diag(ψ)).

    :param mean: Mean of the vectors, c, [D].
    :param factors: Factor loadings, F, [D, K].
    :param variances: Variances of the noise, ψ, [D].
    """

    mean: tf.Tensor
    factors: tf.Tensor
    variances: tf.Tensor

    def as_distribution(self) -> tfp.distributions.MultivariateNormalDiagPlusLowRankCovariance:
        """Return the TFP distribution, whose density needs K by K matrices only."""
        return tfp.distributions.MultivariateNormalDiagPlusLowRankCovariance(
            self.mean, self.variances, self.factors
        )

    def sample(self, num_samples: int, *, seed: int | tf.Tensor | None = None) -> tf.Tensor:
        """Draw vectors.

        :param num_samples: Number of samples.
        :param seed: An integer or stateless seed; None for fresh draws.
        :return: [num_samples, D].
        :raises ValueError: If ``num_samples`` is not a positive integer.
        """
        check_integers(num_samples=num_samples)
        dtype = tf.as_dtype(self.mean.dtype)
        factor_seed, noise_seed = split_seed(as_seed(seed), 2)
        D, K = self.factors.shape
        h = normal([num_samples, K], factor_seed, dtype)
        noise = tf.sqrt(self.variances) * normal([num_samples, D], noise_seed, dtype)
        return self.mean + tf.matmul(h, self.factors, transpose_b=True) + noise

    def covariance(self) -> tf.Tensor:
        """Return F Fᵀ + diag(ψ), [D, D]: for small D only."""
        return self.as_distribution().covariance()
