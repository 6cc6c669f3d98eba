"""What stands between raw units and the model's, as TensorFlow operations."""

from __future__ import annotations

import tensorflow as tf
from gpflow import default_float
from gpflow.base import MeanAndVariance

from gpflow_dwp.data import Standardiser
from gpflow_dwp.likelihoods import unwarped_moments, warp_of
from gpflow_dwp.models import (
    PosteriorDraws,
    VariationalModel,
    accepted_observations,
    count_columns,
    mixture_moments,
)
from gpflow_dwp.validation import check_instance


class RawUnits:
    """The way into a model's units and back.

    :param model: The model.
    :param inputs: Standardiser of X; None if there was none.
    :param outputs: Standardiser of Y; None if there was none.
    :raises ValueError: If a standardiser does not have the model's columns.
    """

    def __init__(
        self, model: VariationalModel, inputs: Standardiser | None, outputs: Standardiser | None
    ) -> None:
        for name, standardiser, expected in (
            ("input_standardiser", inputs, model.num_inputs),
            ("output_standardiser", outputs, model.num_outputs),
        ):
            if standardiser is not None:
                check_instance(Standardiser, **{name: standardiser})
            if standardiser is not None and len(standardiser.mean) != expected:
                raise ValueError(
                    f"{name} must have {expected} columns, as the model has, got "
                    f"{len(standardiser.mean)}."
                )
        self._inputs, self._outputs = _constants(inputs), _constants(outputs)
        self._accepted = accepted_observations(model.likelihood)
        self.num_columns = count_columns(model.likelihood, model.num_outputs)
        """P, the columns of Y; None where that is not known."""
        offset = 0.0 if outputs is None else outputs.log_density_offset
        self._log_density_offset = tf.constant(offset, default_float())
        self._warp = warp_of(model.likelihood)

    def to_inputs(self, X: tf.Tensor) -> tf.Tensor:
        """Bring raw inputs to the model's units."""
        tf.debugging.assert_all_finite(X, "X must be finite")
        mean, scale = self._inputs
        return (X - mean) / scale

    def to_observations(self, Y: tf.Tensor) -> tf.Tensor:
        """Bring raw observations to the model's units."""
        mean, scale = self._outputs
        Y = (Y - mean) / scale
        tf.debugging.assert_all_finite(Y, "Y must be finite")
        right = tf.reduce_all(self._accepted.accepts(Y))
        tf.debugging.Assert(right, [f"Y must hold {self._accepted.expected}"])
        return Y

    def function_moments(self, posterior: PosteriorDraws, X: tf.Tensor) -> MeanAndVariance:
        """Return mean and variance of functions on the scale of the model's observations."""
        if self._warp is None:
            return posterior.predict_f(X)
        components = posterior.predict_f_components(X)
        return mixture_moments(*unwarped_moments(self._warp, *components))

    def from_functions(self, values: tf.Tensor) -> tf.Tensor:
        """Bring draws of functions to raw units."""
        return self.from_values(values if self._warp is None else self._warp.inverse(values))

    def from_values(self, values: tf.Tensor) -> tf.Tensor:
        """Bring what the model predicts to raw units."""
        mean, scale = self._outputs
        return values * scale + mean

    def from_variances(self, variances: tf.Tensor) -> tf.Tensor:
        """Bring the model's variances to squared raw units."""
        return variances * tf.square(self._outputs[1])

    def from_log_densities(self, log_densities: tf.Tensor) -> tf.Tensor:
        """Bring log densities to those per raw unit."""
        return log_densities + self._log_density_offset


def _constants(standardiser: Standardiser | None) -> tuple[tf.Tensor, tf.Tensor]:
    mean, scale = (0.0, 1.0) if standardiser is None else (standardiser.mean, standardiser.scale)
    return tf.constant(mean, default_float()), tf.constant(scale, default_float())
