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
    "fill_trapezoid",
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
    vector_shape: Callable[[Any], tf.Tensor] = shape_depends_on_df,
    matrix_shape: Callable[[Any], tf.Tensor] = shape_depends_on_df,
) -> dict[str, Any]:
    """Describe the parameters of a generalised Bartlett factor.

    :param dtype: Their dtype.
    :param vector_shape: From a sample's shape to that of ``concentration`` and ``rate``.
    :param matrix_shape: From a sample's shape to that of ``loc`` and ``scale``.
    :return: Properties by parameter name.
    """

    def positive() -> Any:
        return tfp.bijectors.Softplus(low=np.finfo(dtype.as_numpy_dtype).eps)

    properties = {}
    for name, ndims in BARTLETT_EVENT_NDIMS.items():
        constraint = {} if name == "loc" else {"default_constraining_bijector_fn": positive}
        shape_fn = vector_shape if ndims == 1 else matrix_shape
        properties[name] = tfp.util.ParameterProperties(
            event_ndims=ndims, shape_fn=shape_fn, **constraint
        )
    return properties


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


def fill_trapezoid(size: int, rank: int) -> Any:
    """Return a bijector onto the lower trapezoids with a positive diagonal.

    A vector of R (R + 1)/2 + (M - R) R real numbers becomes the leading triangle, the diagonal
    through softplus, and the rows below it.

    :param size: Number of rows of the matrix, M.
    :param rank: Rank of the Gram matrix, R.
    """
    bijectors = tfp.bijectors
    triangle = bijectors.FillScaleTriL(diag_bijector=bijectors.Softplus(), diag_shift=None)
    if size == rank:
        return triangle
    below = size - rank
    entries = [rank * (rank + 1) // 2, below * rank]
    return bijectors.Chain(
        [
            bijectors.Invert(bijectors.Split([rank, below], axis=-2)),
            bijectors.JointMap([triangle, bijectors.Reshape([below, rank], [below * rank])]),
            bijectors.Split(entries),
        ],
    )
