"""What all distributions here share: matrices of a known shape, and parameters of a few kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

__all__ = ["MatrixDistribution", "properties"]

_POSITIVE = ("concentration", "rate")
_TRIANGULAR = ("scale_tril", "column_mixing_tril")


class MatrixDistribution(tfp.distributions.AutoCompositeTensorDistribution):
    """Reparameterised, of matrices; ``tf.function`` takes and returns it.

    With ``validate_args`` parameters are checked when they are used, also where their values are
    not known before. Abstract.

    :param shape: Of a sample.
    :param parameters: The arguments of the distribution.
    """

    def __init__(
        self, shape: tuple[int, int], dtype: tf.DType, parameters: dict[str, Any], name: str
    ) -> None:
        self._shape_of_samples = shape
        super().__init__(
            dtype=dtype,
            reparameterization_type=tfp.distributions.FULLY_REPARAMETERIZED,
            validate_args=parameters["validate_args"],
            allow_nan_stats=True,
            parameters=parameters,
            name=name,
        )

    def _event_shape(self) -> tf.TensorShape:
        return tf.TensorShape(self._shape_of_samples)

    def _event_shape_tensor(self) -> tf.Tensor:
        return tf.constant(self._shape_of_samples, dtype=tf.int32)

    def _parameter_control_dependencies(self, is_init: bool) -> list[Any]:
        if not self.validate_args:
            return []
        values = {name: getattr(self, name) for name in self._parameter_properties(self.dtype)}
        return [
            tf.debugging.assert_positive(
                tf.linalg.diag_part(value) if name in _TRIANGULAR else value,
                message=f"{name} must be positive{' on its diagonal' * (name in _TRIANGULAR)}",
            )
            for name, value in values.items()
            if name in (*_POSITIVE, *_TRIANGULAR) and is_init != isinstance(value, tf.Variable)
        ]


def properties(dtype: Any, **event_ndims: int) -> dict[str, Any]:
    """Describe parameters by how many of their dimensions are not of the batch.

    :param dtype: That of the distribution, for what makes admissible parameters of all vectors.
    """
    bijectors = tfp.bijectors

    def constraining(name: str) -> Any:
        if name in _TRIANGULAR:
            epsilon = np.finfo(tf.as_dtype(dtype or tf.float32).as_numpy_dtype).eps
            return bijectors.FillScaleTriL(diag_shift=epsilon)
        return bijectors.Softplus() if name in (*_POSITIVE, "scale") else bijectors.Identity()

    shapes = (
        lambda shape: shape[:-2],
        lambda shape: tf.concat([tf.cast(shape[:-2], tf.int32), shape[-1:]], axis=0),
        lambda shape: shape,
    )
    return {
        name: tfp.util.ParameterProperties(
            event_ndims=ndims,
            shape_fn=shapes[ndims],
            default_constraining_bijector_fn=lambda name=name: constraining(name),
        )
        for name, ndims in event_ndims.items()
    }
