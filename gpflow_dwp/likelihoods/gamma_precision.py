"""A precision with a Gamma prior and a Gamma posterior, and everything of it in closed form."""

from __future__ import annotations

import gpflow
import tensorflow as tf
from gpflow import Parameter, default_float
from gpflow.utilities import positive

from gpflow_dwp.validation import check_positive

__all__ = ["GammaPrecision"]


class GammaPrecision(gpflow.Module):
    """τ with the prior Gam(a₀, b₀) and the posterior Gam(a, b), of concentration and rate.

    :param prior_concentration: Shape of the prior, a₀, positive.
    :param prior_rate: b₀, positive, in the inverse units of τ.
    :raises ValueError: If one of them is not positive.
    """

    def __init__(self, prior_concentration: float, prior_rate: float) -> None:
        super().__init__(name="GammaPrecision")
        check_positive(prior_concentration=prior_concentration, prior_rate=prior_rate)
        self.prior_concentration = float(prior_concentration)
        self.prior_rate = float(prior_rate)
        dtype, transform = default_float(), positive(base="exp", lower=0.0)
        self.concentration = Parameter(prior_concentration, dtype=dtype, transform=transform)
        self.rate = Parameter(prior_rate, dtype=dtype, transform=transform)

    @property
    def mean(self) -> tf.Tensor:
        """E[τ] = a / b."""
        return tf.convert_to_tensor(self.concentration) / tf.convert_to_tensor(self.rate)

    @property
    def mean_log(self) -> tf.Tensor:
        """E[log τ] = ψ(a) - log b."""
        return tf.math.digamma(self.concentration) - tf.math.log(self.rate)

    @property
    def mean_inverse(self) -> tf.Tensor:
        """E[1 / τ] = b / (a - 1), infinite where a ≤ 1."""
        excess = tf.convert_to_tensor(self.concentration) - 1.0
        infinity = tf.constant(float("inf"), excess.dtype)
        return tf.where(excess > 0.0, self.rate / excess, infinity)

    def kl_divergence(self) -> tf.Tensor:
        """KL(q(τ) || p(τ)) in nats, []."""
        a, b = tf.convert_to_tensor(self.concentration), tf.convert_to_tensor(self.rate)
        a0 = tf.constant(self.prior_concentration, a.dtype)
        b0 = tf.constant(self.prior_rate, a.dtype)
        return (
            (a - a0) * tf.math.digamma(a)
            - tf.math.lgamma(a)
            + tf.math.lgamma(a0)
            + a0 * (tf.math.log(b) - tf.math.log(b0))
            + a * (b0 - b) / b
        )
