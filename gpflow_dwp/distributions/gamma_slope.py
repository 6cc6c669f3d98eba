"""How a Gamma variable moves with its concentration, at a fixed quantile."""

from __future__ import annotations

import tensorflow as tf
from scipy.special import roots_sh_legendre

__all__ = ["gamma_slope"]

# A Gauss-Legendre rule, in t (1 + t) / 2: its nodes are closer to zero, where the integrand is.
_T, _WEIGHTS_OF_T = roots_sh_legendre(28)
_NODES, _WEIGHTS = 0.5 * _T * (1.0 + _T), _WEIGHTS_OF_T * (0.5 + _T)
_NEGLIGIBLE = 35.0
"""Where the integrand is exp(-35) of what it is at zero, the integral ends."""


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
