"""A model's trainable parameters as one vector."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf

__all__ = ["assign_parameter_vector", "parameter_vector"]


def parameter_vector(module: tf.Module) -> npt.NDArray[np.float64]:
    """Return all trainable parameters, in their unconstrained space, in one float64 vector, [D].

    :param module: A GPflow model, or any module.
    :raises ValueError: If nothing is trainable.
    """
    if not module.trainable_variables:
        raise ValueError(f"{type(module).__name__} has no trainable parameters.")
    parts = [variable.numpy().ravel() for variable in module.trainable_variables]
    return np.concatenate(parts, dtype=np.float64)


def assign_parameter_vector(module: tf.Module, vector: npt.ArrayLike) -> None:
    """Give a module the parameters that :func:`parameter_vector` returned.

    :param module: A GPflow model, or any module.
    :param vector: The vector of all parameters, [D].
    :raises ValueError: If the length is not that of the module's parameters; none has changed then.
    """
    variables = module.trainable_variables
    sizes = [variable.shape.num_elements() for variable in variables]
    vector = np.asarray(vector)
    if vector.shape != (sum(sizes),):
        raise ValueError(f"vector must have shape ({sum(sizes)},), got {vector.shape}.")
    parts = np.split(vector, np.cumsum(sizes)[:-1])
    for variable, part in zip(variables, parts, strict=True):
        variable.assign(part.reshape(variable.shape).astype(variable.dtype.as_numpy_dtype))
