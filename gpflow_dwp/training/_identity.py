"""What a run is of, in plain values: so that a checkpoint goes on with that run and no other."""

from __future__ import annotations

import hashlib
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.utilities import parameter_dict

__all__ = ["run_identity"]


def run_identity(
    model: gpflow.Module, data: RegressionData | tf.data.Dataset, optimizer: Any
) -> dict[str, Any]:
    """Describe model, data and optimiser as far as that can be told without their values.

    :param model: The model.
    :param data: Inputs and observations, or a dataset, of which nothing is said.
    :param optimizer: The optimiser.
    :return: Names of classes; dtype and shape of each parameter; shapes and a hash of the data.
    """
    described: dict[str, Any] = {
        "optimizer": type(optimizer).__name__,
        "model": [type(module).__name__ for module in (model, *model.submodules)],
        "parameters": {
            path: f"{parameter.dtype.name} {list(parameter.shape)}"
            for path, parameter in parameter_dict(model).items()
        },
    }
    if not isinstance(data, tf.data.Dataset):
        arrays = [np.ascontiguousarray(part, np.float64) for part in data]
        digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()
        shapes = " and ".join(str(list(array.shape)) for array in arrays)
        described["data"] = f"{shapes}, SHA-256 {digest[:16]}"
    return described
