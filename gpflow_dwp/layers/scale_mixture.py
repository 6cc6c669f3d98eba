"""The part of a Wishart layer's posterior scale that is learned rather than inherited."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import Parameter, default_float
from gpflow.utilities import positive

__all__ = ["ScaleMixture"]


_PROPORTION = 1e-6


class ScaleMixture(gpflow.Module):
    """Mixes a prior's scale S with a learned one: (1 - q) S + q s V Vᵀ / M.

    q starts at 1e-6. With the published code's start, 0.018, the random V is dear where a smooth
    kernel makes S nearly singular: thousands of nats for each row of the data.

    :param num_inducing: Number of inducing points, M.
    :param rng: Draws the starting value of V, standard normal.
    """

    def __init__(self, num_inducing: int, rng: np.random.Generator) -> None:
        super().__init__(name="ScaleMixture")
        dtype = default_float()
        self.num_inducing = num_inducing
        self.root = Parameter(rng.standard_normal((num_inducing, num_inducing)), dtype=dtype)
        self.root_scale = Parameter(1.0, dtype=dtype, transform=positive(base="exp"))
        self.proportion = Parameter(_PROPORTION, dtype=dtype, transform=tfp.bijectors.Sigmoid())

    def mix(self, covariance: tf.Tensor, df: int) -> tf.Tensor:
        """Return ν times the mixture, given K = ν S.

        :param covariance: Covariance at the inducing points, K, [S, M, M].
        :param df: Degrees of freedom, ν.
        """
        proportion, root_scale, root = (
            tf.cast(parameter, covariance.dtype)
            for parameter in (self.proportion, self.root_scale, self.root)
        )
        factor = proportion * root_scale * (df / self.num_inducing)
        learned = factor * tf.matmul(root, root, transpose_b=True)
        return (1.0 - proportion) * covariance + learned
