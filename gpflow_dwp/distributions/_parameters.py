"""What the distributions say of their parameters to TFP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

__all__ = [
    "BARTLETT_EVENT_NDIMS",
    "bartlett_properties",
    "gram_factor_properties",
    "matrix_property",
    "shape_depends_on_df",
    "shape_of_columns",
    "shape_of_sample",
    "tril_property",
]

BARTLETT_EVENT_NDIMS = {"concentration": 1, "rate": 1, "loc": 2, "scale": 2}
"""The number of dimensions that are not of the batch, of each parameter of the factor."""


def shape_depends_on_df(sample_shape: Any) -> tf.Tensor:
    """Refuse: the shape of a factor's parameter does not follow from that of a sampled matrix.

    :raises NotImplementedError: Always.
    """
    raise NotImplementedError(
        f"The shape depends on df, not only on {sample_shape}: give this parameter yourself."
    )


def shape_of_sample(sample_shape: Any) -> Any:
    """The shape of a parameter that has one entry for each of a sample."""
    return sample_shape


def shape_of_columns(sample_shape: Any) -> tf.Tensor:
    """The shape of a parameter that has one entry for each column of a sampled matrix."""
    # As a tensor: an empty slice of a list would become one of floating point.
    shape = tf.cast(sample_shape, tf.int32)
    return tf.concat([shape[:-2], shape[-1:]], axis=0)


def bartlett_properties(
    dtype: tf.DType,
    vector_shape: Callable[[Any], tf.Tensor],
    matrix_shape: Callable[[Any], tf.Tensor],
) -> dict[str, Any]:
    """Describe the parameters of a generalised Bartlett factor.

    :param dtype: Their dtype.
    :param vector_shape: From a sample's shape to that of ``concentration`` and ``rate``.
    :param matrix_shape: From a sample's shape to that of ``loc`` and ``scale``.
    :return: Properties by parameter name.
    """

    def positive() -> Any:
        return tfp.bijectors.Softplus(low=np.finfo(dtype.as_numpy_dtype).eps)

    make = tfp.util.ParameterProperties
    return {
        "concentration": make(
            event_ndims=1, shape_fn=vector_shape, default_constraining_bijector_fn=positive
        ),
        "rate": make(
            event_ndims=1, shape_fn=vector_shape, default_constraining_bijector_fn=positive
        ),
        "loc": make(event_ndims=2, shape_fn=matrix_shape),
        "scale": make(
            event_ndims=2, shape_fn=matrix_shape, default_constraining_bijector_fn=positive
        ),
    }


def gram_factor_properties(dtype: tf.DType) -> dict[str, Any]:
    """Describe the parameters of the factor of a random Gram matrix.

    :param dtype: Their dtype.
    :return: Properties by parameter name.
    """
    return bartlett_properties(dtype, shape_depends_on_df, shape_depends_on_df)


def matrix_property() -> Any:
    """Describe an unconstrained matrix of the size of a sample."""
    return tfp.util.ParameterProperties(event_ndims=2)


def tril_property(dtype: tf.DType, shape_fn: Callable[[Any], tf.Tensor] = shape_of_sample) -> Any:
    """Describe a lower-triangular matrix with a positive diagonal.

    :param dtype: Its dtype.
    :param shape_fn: From a sample's shape to that of the matrix.
    """

    def tril() -> Any:
        shift = np.finfo(dtype.as_numpy_dtype).eps
        return tfp.bijectors.FillScaleTriL(diag_shift=shift)

    return tfp.util.ParameterProperties(
        event_ndims=2, shape_fn=shape_fn, default_constraining_bijector_fn=tril
    )
