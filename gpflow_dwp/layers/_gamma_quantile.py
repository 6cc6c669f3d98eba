"""Standard normal numbers, turned into Gamma variables."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from scipy.special import ndtri

from gpflow_dwp.distributions.gamma_slope import gamma_slope

__all__ = ["gamma_quantile"]

_LARGE = 1000.0
"""Above this α the expansion is the more accurate one."""


def gamma_quantile(concentration: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    r"""Return z with P(Gamma(α, rate 1) ≤ z) = Φ(x): a Gamma variable, where x is a normal one.

    Each of the two tails is computed from its own probability. Where 1 - Φ(x) is less than twice
    the dtype's rounding error (x > 8.0, or 5.0 in single precision) x is taken for that bound. The
    gradients are the implicit ones, with p the density of z and φ that of x:

    .. math:: \frac{\partial z}{\partial\alpha}
              = -\frac{\partial P(\alpha, z) / \partial\alpha}{p(z)}, \quad
              \frac{\partial z}{\partial x} = \frac{\phi(x)}{p(z)}.

    For α > 1000 it is the expansion of Cornish and Fisher in powers of α^{-1/2}, whose relative
    error is below 3e-8.

    :param concentration: α, at least 1, of a shape that broadcasts with that of ``noise``.
    :param noise: x, of any shape.
    :return: z, of the shape of ``noise``.
    """
    concentration = tf.broadcast_to(concentration, tf.shape(noise))
    rounding_error = np.finfo(noise.dtype.as_numpy_dtype).eps
    noise = tf.minimum(noise, tf.constant(-ndtri(2.0 * rounding_error), noise.dtype))
    # Neither branch is to see what the other is for: not even its gradient would be finite.
    is_large = concentration > _LARGE
    limit = tf.constant(_LARGE, noise.dtype)
    return tf.where(
        is_large,
        _cornish_fisher(tf.maximum(concentration, limit), noise),
        _inverse(tf.minimum(concentration, limit), noise),
    )


def _inverse(concentration: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    flat = _traced_once(noise.dtype)(tf.reshape(concentration, [-1]), tf.reshape(noise, [-1]))
    gamma = tf.ensure_shape(tf.reshape(flat, tf.shape(noise)), noise.shape)
    return _with_implicit_gradients(concentration, noise, tf.stop_gradient(gamma))


@tf.custom_gradient
def _with_implicit_gradients(
    concentration: tf.Tensor, noise: tf.Tensor, gamma: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, None]]]:
    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, None]:
        # It moves with both in a second derivative, too.
        z = _with_implicit_gradients(concentration, noise, gamma)
        log_z = tf.math.log(z)
        log_normal = -0.5 * noise**2 - 0.5 * math.log(2.0 * math.pi)
        log_density = (concentration - 1.0) * log_z - z - tf.math.lgamma(concentration)
        in_concentration = z * gamma_slope(concentration, log_z)
        return upstream * in_concentration, upstream * tf.exp(log_normal - log_density), None

    return tf.identity(gamma), gradient


@functools.cache
def _traced_once(dtype: tf.DType) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """The inverse for vectors of any length, which would add 2,940 nodes to every graph."""
    spec = tf.TensorSpec([None], dtype)
    return tf.function(_tail_by_tail, input_signature=[spec, spec], autograph=False)


def _tail_by_tail(concentration: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    is_lower = noise < 0.0
    tail = 0.5 * tf.math.erfc(math.sqrt(0.5) * tf.abs(noise))
    half = tf.constant(0.5, noise.dtype)
    return tf.where(
        is_lower,
        tfp.math.igammainv(concentration, tf.where(is_lower, tail, half)),
        tfp.math.igammacinv(concentration, tf.where(is_lower, half, tail)),
    )


def _cornish_fisher(concentration: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    # Equation 31 of DiDonato and Morris, "Computation of the incomplete gamma function ratios and
    # their inverse", 1986.
    root = tf.sqrt(concentration)
    return (
        concentration
        + x * root
        + (x**2 - 1.0) / 3.0
        + (x**3 - 7.0 * x) / (36.0 * root)
        - (3.0 * x**4 + 7.0 * x**2 - 16.0) / (810.0 * concentration)
        + (9.0 * x**5 + 256.0 * x**3 - 433.0 * x) / (38880.0 * concentration * root)
    )
