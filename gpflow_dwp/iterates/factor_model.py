"""Gaussians whose covariance is a few factors plus a diagonal."""

from __future__ import annotations

from typing import NamedTuple

import gpflow
import numpy as np
import numpy.typing as npt
import scipy.linalg
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp.random import as_generator, as_seed, normal, split_seed
from gpflow_dwp.validation import check_integers

__all__ = ["FactorModel", "generate_factor_model"]


class FactorModel(NamedTuple):
    """The Gaussian of c + F h + ε, where h ~ N(0, I) and ε ~ N(0, diag(ψ)).

    Leading axes, if any, hold several models.

    :param mean: Mean of the vectors, c, [..., D].
    :param factors: Factor loadings, F, [..., D, K].
    :param variances: Variances of the noise, ψ, [..., D].
    """

    mean: tf.Tensor
    factors: tf.Tensor
    variances: tf.Tensor

    @classmethod
    def from_arrays(
        cls, mean: npt.ArrayLike, factors: npt.ArrayLike, variances: npt.ArrayLike
    ) -> FactorModel:
        """Return the model of float64 tensors, whatever GPflow's default is."""
        return cls(*(tf.constant(part, tf.float64) for part in (mean, factors, variances)))

    def as_distribution(self) -> tfp.distributions.MultivariateNormalDiagPlusLowRankCovariance:
        """Return the TFP distribution, which works with K by K matrices only."""
        return tfp.distributions.MultivariateNormalDiagPlusLowRankCovariance(
            self.mean, self.variances, self.factors
        )

    def sample(self, num_samples: int, *, seed: int | tf.Tensor | None = None) -> tf.Tensor:
        """Draw vectors.

        :param num_samples: Number of samples.
        :param seed: An integer or stateless seed; None for fresh draws.
        :return: [num_samples, ..., D].
        :raises ValueError: If ``num_samples`` is not a positive integer.
        """
        check_integers(num_samples=num_samples)
        dtype = self.mean.dtype
        factor_seed, noise_seed = split_seed(as_seed(seed), 2)
        shape = tf.shape(self.factors)
        latent_shape = tf.concat([[num_samples], shape[:-2], shape[-1:]], axis=0)
        noise_shape = tf.concat([[num_samples], shape[:-1]], axis=0)
        latent = normal(latent_shape, factor_seed, dtype)
        noise = tf.sqrt(self.variances) * normal(noise_shape, noise_seed, dtype)
        return self.mean + tf.linalg.matvec(self.factors, latent) + noise

    def covariance(self) -> tf.Tensor:
        """Return F Fᵀ + diag(ψ), [..., D, D]: for small D only."""
        dense = tf.matmul(self.factors, self.factors, transpose_b=True)
        return tf.linalg.set_diag(dense, tf.linalg.diag_part(dense) + self.variances)


def generate_factor_model(
    dimension: int, rank: int, spectrum: tuple[float, float], *, seed: int = 0
) -> FactorModel:
    """Draw a factor model whose conditioning is known.

    Its factors are the first eigenvectors of A Aᵀ, for a matrix A of standard normal numbers, each
    times a number s_k; Brownlie (2021), algorithm 3. That algorithm draws D numbers s² and lets
    the largest of all bound the noise variances although only K of them scale a factor; so does
    this function.

    :param dimension: Length of the vectors, D.
    :param rank: Number of factors, K, at most D.
    :param spectrum: The interval from which s² is uniform.
    :param seed: The same seed gives the same model.
    :raises ValueError: If a number is not a positive integer, K is above D, or the interval is not
        one of positive numbers.
    """
    check_integers(dimension=dimension, rank=rank)
    if rank > dimension:
        raise ValueError(f"rank must be at most dimension, {dimension}, got {rank}.")
    low, high = spectrum
    if not 0.0 < low <= high < np.inf:
        raise ValueError(f"spectrum must be an interval of positive numbers, got {spectrum}.")
    rng = as_generator(seed)
    mean = rng.standard_normal(dimension)
    root = rng.standard_normal((dimension, dimension))
    directions = _leading_eigenvectors(root @ root.T, rank)
    squares = rng.uniform(low, high, dimension)
    variances = rng.uniform(0.0, squares.max(), dimension)
    dtype = gpflow.default_float()
    return FactorModel(
        tf.constant(mean, dtype),
        tf.constant(directions * np.sqrt(squares[:rank]), dtype),
        tf.constant(variances, dtype),
    )


def _leading_eigenvectors(matrix: npt.NDArray[np.float64], num: int) -> npt.NDArray[np.float64]:
    size = len(matrix)
    _, vectors = scipy.linalg.eigh(matrix, subset_by_index=[size - num, size - 1])
    return vectors[:, ::-1]
