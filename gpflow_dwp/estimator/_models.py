"""Copies of models."""

from __future__ import annotations

import tensorflow as tf
from gpflow.utilities import deepcopy

from gpflow_dwp.models import DeepWishartProcess

__all__ = ["copy_of"]


def copy_of(model: DeepWishartProcess) -> DeepWishartProcess:
    """A copy that can be given other rows, as TensorFlow's own copies of variables cannot."""
    copies = {
        id(variable): tf.Variable(variable, trainable=variable.trainable, shape=variable.shape)
        for variable in model.variables
        if not variable.shape.is_fully_defined()
    }
    return deepcopy(model, copies)
