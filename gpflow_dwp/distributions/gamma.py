"""Gamma variables: draws, quantiles, and how they move with their concentration."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from scipy.special import ndtri, roots_sh_legendre

from gpflow_dwp.random import normal, split_seed, uniform

__all__ = ["gamma_quantile", "gamma_slope", "sample_log_gamma"]

_NUM_CANDIDATES = 12
# A Gauss-Legendre rule, in t (1 + t) / 2: its nodes are closer to zero, where the integrand is.
_T, _WEIGHTS_OF_T = roots_sh_legendre(28)
_NODES, _WEIGHTS = 0.5 * _T * (1.0 + _T), _WEIGHTS_OF_T * (0.5 + _T)
_NEGLIGIBLE = 35.0
"""Where the integrand is exp(-35) of what it is at zero, the integral ends."""
_LARGE = 1000.0
"""Above this α the expansion is the more accurate one."""


def sample_log_gamma(concentration: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    r"""Draw log z for z ~ Gamma(α, rate 1), one draw for each entry.

    With α' = α + 1, d = α' - ⅓ and x ~ N(0, 1), Marsaglia and Tsang (2000) accept
    d v with v = (1 + x / √(9d))³ as a draw of Gamma(α') where v > 0 and
    log u < ½x² + d - d v + d log v, for u uniform. Then z = d v u'^(1/α) has concentration α, and
    its logarithm does not underflow, however small α is. An α' of at least one has a probability of
    rejection below 0.05: of 12 candidates drawn at once, one is accepted but for a probability
    below 3e-16. There is no loop, so that eager, compiled and XLA code make the same draws, which
    TFP's samplers do not.

    Nor does the gradient underflow, that of :func:`gamma_slope`.

    :param concentration: Shape parameters of the Gamma distributions, α, of any shape.
    :param seed: A stateless seed.
    :return: A tensor of that shape.
    """
    alpha = tf.stop_gradient(concentration)
    return _move_with_concentration(concentration, _marsaglia_tsang(alpha, seed))


def _marsaglia_tsang(alpha: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    dtype = alpha.dtype
    normal_seed, uniform_seed, boost_seed = split_seed(seed, 3)
    shape = tf.concat([[_NUM_CANDIDATES], tf.shape(alpha)], axis=0)
    x = normal(shape, normal_seed, dtype)
    log_u = tf.math.log(uniform(shape, uniform_seed, dtype))
    log_boost = tf.math.log(uniform(shape[1:], boost_seed, dtype))

    d = alpha + (1.0 - 1.0 / 3.0)
    root_v = 1.0 + x / tf.sqrt(9.0 * d)
    positive = root_v > 0.0
    log_v = 3.0 * tf.math.log(tf.where(positive, root_v, tf.ones([], dtype)))
    bound = 0.5 * x**2 + d * (1.0 - root_v**3 + log_v)
    accepted = tf.logical_and(positive, log_u < bound)
    is_first = tf.logical_and(accepted, tf.cumsum(tf.cast(accepted, dtype), axis=0) == 1.0)
    log_v = tf.reduce_sum(tf.where(is_first, log_v, tf.zeros([], dtype)), axis=0)
    return tf.math.log(d) + log_v + log_boost / alpha


@tf.custom_gradient
def _move_with_concentration(
    concentration: tf.Tensor, log_gamma: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, None]]]:
    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, None]:
        # The draw moves with the concentration in a second derivative, too.
        draw = _move_with_concentration(concentration, log_gamma)
        return upstream * gamma_slope(concentration, draw), None

    return tf.identity(log_gamma), gradient


def gamma_slope(concentration: tf.Tensor, log_gamma: tf.Tensor) -> tf.Tensor:
    r"""Return d log z / dα of z ~ Gamma(α, rate 1) where P(Gamma(α) ≤ z) stays: the implicit
    gradient of a draw (Figurnov et al., 2018).

    With p the density, ψ the digamma function and s = log z it is

    .. math:: \frac{d \log z}{d\alpha} = -\frac{\partial P / \partial\alpha}{z\, p(z)}
              = \int_0^{\infty} (\psi(\alpha) - s + u)\, e^{-\alpha u + z (1 - e^{-u})} du
              = \int_0^{\infty} (s + u - \psi(\alpha))\, e^{\alpha u - z (e^u - 1)} du,

    which are ∂P/∂α below z, and that above it with the other sign, in u = \|log z' - s\|. The first
    is taken where s < ψ(α), the second elsewhere, so that nothing cancels, by a Gauss-Legendre rule
    of 28 nodes from zero to where the exponent is -35. There is no loop, which XLA would make of
    TensorFlow's ``RandomGammaGrad``, and no limit of α: the relative error is below 1e-13 for
    0.01 ≤ α ≤ 1000 and grows as √α after that, to 2e-11 for α = 10⁸.

    Where α < 1 and z is small the integrand is wide. Then it comes from that of α + 1, by the
    recurrence z p(z; α) = α p(z; α + 1), which has the limit for z → 0.

    It is differentiable, with s as a variable of its own.

    :param concentration: Shape parameters of the Gamma distributions, α, of any shape.
    :param log_gamma: Logarithms of Gamma variables, s, of that shape.
    :return: A tensor of that shape and dtype. It is computed in float64.
    """
    # Nodes are the second axis.
    alpha, s = (tf.reshape(tf.cast(t, tf.float64), [-1, 1]) for t in (concentration, log_gamma))
    z = tf.exp(s)
    is_raised = tf.logical_and(alpha < 1.0, s < 0.0)
    a = tf.where(is_raised, alpha + 1.0, alpha)
    distance = tf.math.digamma(a) - s
    # y is -u below z, and u above it.
    y_end = tf.where(distance > 0.0, -_end_below(a, z), _end_above(a, z))
    y = tf.stop_gradient(y_end) * _NODES
    integrand = (y - distance) * tf.exp(a * y - z * tf.math.expm1(y))
    integral = tf.reduce_sum(_WEIGHTS * integrand, axis=1, keepdims=True)
    slope = tf.stop_gradient(y_end) * integral
    slope = tf.where(is_raised, (z * slope + distance) / alpha, slope)
    return tf.reshape(tf.cast(slope, concentration.dtype), tf.shape(concentration))


def _end_below(a: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
    # (a - z) u + z u² / (2 + u), which is less than a u - z (1 - exp(-u)), is 35 there.
    half = 0.5 * _NEGLIGIBLE - (a - z)
    return (half + tf.sqrt(half**2 + 2.0 * _NEGLIGIBLE * a)) / a


def _end_above(a: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
    # (z - a) u + z u² / 2 is 35 at first; z (exp(u) - 1) - a u is more there, and after the step.
    z = tf.maximum(z, 0.5)  # as it is wherever this end is the one
    first = (a - z + tf.sqrt((a - z) ** 2 + 2.0 * _NEGLIGIBLE * z)) / z
    return tf.math.log1p((_NEGLIGIBLE + a * first) / z)


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
    # Of constants: a graph of the inverse's own gradient would take half a second to make.
    constants = (tf.stop_gradient(tf.reshape(each, [-1])) for each in (concentration, noise))
    flat = _traced_once(noise.dtype)(*constants)
    gamma = tf.ensure_shape(tf.reshape(flat, tf.shape(noise)), noise.shape)
    return _move_with_both(concentration, noise, gamma)


@tf.custom_gradient
def _move_with_both(
    concentration: tf.Tensor, noise: tf.Tensor, gamma: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, None]]]:
    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, None]:
        # It moves with both in a second derivative, too.
        z = _move_with_both(concentration, noise, gamma)
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
