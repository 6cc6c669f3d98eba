"""An increasing function of the observations that bends and stretches them."""

from __future__ import annotations

import math
from typing import Any

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.utilities import positive

from gpflow_dwp.validation import as_real_array, check_integers

__all__ = ["SinhArcsinh", "by_column"]

_NOWHERE = 1e30


class SinhArcsinh(gpflow.Module):
    r"""The sinh-arcsinh function, of a shifted and scaled observation, with learned parameters.

    .. math:: g(y) = \mu + \sinh(\delta \operatorname{arsinh} u - \epsilon), \qquad
              u = (y - \xi) / \lambda .

    For large \|u\| it is a power δ of u: below 1 it draws the tails in, as a root or nearly a
    logarithm does, above 1 it draws them out; ε does so on one side more than on the other. Jones
    and Pewsey, "Sinh-arcsinh distributions", Biometrika 2009, equation 1; of the targets of a
    Gaussian process, Rios and Tobar, "Compositionally-warped Gaussian processes", 2019.

    It starts as the identity. The parameters but μ have weak normal priors, which keep what the
    data say nothing about from running away: standard deviation 1 for ε, log δ and log λ, 2 for ξ,
    in the units of standardised observations.

    Outside of an interval, such as that of the observations, it may go on in a straight line: its
    inverse, which may grow exponentially, does not run away then.

    :param num_outputs: Number of output columns, P, each with parameters of its own.
    :param location: Location of the observations, ξ, a number or [P].
    :param scale: Scale of the observations, λ, positive.
    :param skewness: Skewness, ε.
    :param tailweight: Weight of the tails, δ, positive.
    :param shift: Shift of the result, μ.
    :param lower: Below this the function is its tangent: by default so far out that it never is.
    :param upper: Above this the function is its tangent.
    :raises ValueError: If ``num_outputs`` is not a positive integer, or another argument is not a
        finite number or P of them, positive where it says so, or ``lower`` is above ``upper``.
    """

    def __init__(
        self,
        num_outputs: int = 1,
        *,
        location: npt.ArrayLike = 0.0,
        scale: npt.ArrayLike = 1.0,
        skewness: npt.ArrayLike = 0.0,
        tailweight: npt.ArrayLike = 1.0,
        shift: npt.ArrayLike = 0.0,
        lower: npt.ArrayLike = -_NOWHERE,
        upper: npt.ArrayLike = _NOWHERE,
    ) -> None:
        super().__init__()
        check_integers(num_outputs=num_outputs)
        self.num_outputs = num_outputs
        self.location = by_column("location", location, num_outputs, deviation=2.0)
        self.scale = by_column("scale", scale, num_outputs, deviation=1.0, is_positive=True)
        self.skewness = by_column("skewness", skewness, num_outputs, deviation=1.0)
        self.tailweight = by_column(
            "tailweight", tailweight, num_outputs, deviation=1.0, is_positive=True
        )
        self.shift = by_column("shift", shift, num_outputs)
        self.lower = by_column("lower", lower, num_outputs)
        self.upper = by_column("upper", upper, num_outputs)
        if not np.all(self.lower <= self.upper):
            raise ValueError(f"lower must not be above upper, got {lower!r} and {upper!r}.")
        gpflow.set_trainable([self.lower, self.upper], False)

    def forward(self, Y: tf.Tensor) -> tf.Tensor:
        """Return g(y), [..., P]."""
        inside = self._clip(Y)
        return self._within(inside) + (Y - inside) * tf.exp(self._log_slope(inside))

    def inverse(self, Z: tf.Tensor) -> tf.Tensor:
        """Return the y of which g(y) is ``Z``, [..., P]."""
        dtype = Z.dtype
        ends = (self._within(tf.cast(end, dtype)) for end in (self.lower, self.upper))
        inside = tf.clip_by_value(Z, *ends)
        bent = tf.asinh(inside - tf.cast(self.shift, dtype)) + tf.cast(self.skewness, dtype)
        centred = tf.sinh(bent / tf.cast(self.tailweight, dtype))
        Y = tf.cast(self.location, dtype) + tf.cast(self.scale, dtype) * centred
        beyond = (Z - inside) / tf.exp(self._log_slope(self._clip(Y)))
        return tf.where(inside == Z, Y, self._clip(Y) + beyond)

    def log_derivative(self, Y: tf.Tensor) -> tf.Tensor:
        r"""Return log g'(y) = log(δ/λ) + log cosh(δ arsinh u - ε) - ½ log(1 + u²), [..., P]."""
        return self._log_slope(self._clip(Y))

    def _within(self, Y: tf.Tensor) -> tf.Tensor:
        return tf.cast(self.shift, Y.dtype) + tf.sinh(self._bend(self._centre(Y)))

    def _clip(self, Y: tf.Tensor) -> tf.Tensor:
        if self.num_outputs != 1 and Y.shape[-1] not in (None, self.num_outputs):
            raise ValueError(
                f"Y must have num_outputs={self.num_outputs} columns, as its warp, got shape "
                f"{Y.shape}."
            )
        return tf.clip_by_value(Y, tf.cast(self.lower, Y.dtype), tf.cast(self.upper, Y.dtype))

    def _log_slope(self, Y: tf.Tensor) -> tf.Tensor:
        centred = self._centre(Y)
        rate = tf.math.log(tf.cast(self.tailweight, Y.dtype) / tf.cast(self.scale, Y.dtype))
        size = tf.abs(self._bend(centred))
        log_cosh = size + tf.math.log1p(tf.exp(-2.0 * size)) - math.log(2.0)
        return rate + log_cosh - 0.5 * tf.math.log1p(tf.square(centred))

    def _centre(self, Y: tf.Tensor) -> tf.Tensor:
        return (Y - tf.cast(self.location, Y.dtype)) / tf.cast(self.scale, Y.dtype)

    def _bend(self, centred: tf.Tensor) -> tf.Tensor:
        dtype = centred.dtype
        return tf.cast(self.tailweight, dtype) * tf.asinh(centred) - tf.cast(self.skewness, dtype)


def by_column(
    name: str,
    value: npt.ArrayLike,
    size: int,
    *,
    deviation: float | None = None,
    is_positive: bool = False,
) -> gpflow.Parameter:
    """Make a parameter of P numbers, of one or P that are given.

    :param deviation: Of a normal prior of the unconstrained parameter; None for none.
    :raises ValueError: If they are not such numbers.
    """
    values = as_real_array(name, value)
    admissible = np.isfinite(values) & ((values > 0.0) | (not is_positive))
    if values.shape not in ((), (1,), (size,)) or not admissible.all():
        kind = "positive" if is_positive else "finite"
        raise ValueError(f"{name} must be a {kind} number, or {size} of them, got {value!r}.")
    numbers: npt.NDArray[np.floating[Any]] = np.full(size, values, gpflow.default_float())
    prior = None
    if deviation is not None:
        dtype = gpflow.default_float()
        prior = tfp.distributions.Normal(tf.constant(0.0, dtype), tf.constant(deviation, dtype))
    return gpflow.Parameter(
        numbers,
        transform=positive(base="exp") if is_positive else None,
        prior=prior,
        prior_on="unconstrained",
    )
