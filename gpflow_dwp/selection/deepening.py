"""From a trained model to the start of one that is a layer deeper."""

from __future__ import annotations

import numpy as np
from gpflow.kernels import Kernel
from gpflow.utilities import parameter_dict

from gpflow_dwp.kernels.values import parts_of
from gpflow_dwp.models.deep_kernel_process import DeepKernelProcess

__all__ = ["make_nearly_linear", "start_at", "start_at_smaller"]

# The functions of hidden layers start so many times wider and higher: bounds end higher by some 5
# nats, and the more the deeper the model.
_STRETCH = 3.0
# A regression is on the data of its own model.
_DATA = ("inputs", "targets", "missing", "weights")


def start_at(model: DeepKernelProcess, shallower: DeepKernelProcess) -> None:
    """Start a model where one with a hidden layer less has ended.

    Its layers take the values of the other one's, and so do inducing inputs, likelihood and
    encoder. The layer that is new lies below the output layer. Its functions are nearly linear, so
    that it hands on almost what it gets, and its posterior starts as in a new model.

    :param model: The deeper model, of which values are overwritten.
    :param shallower: One of the same sizes with one hidden layer less.
    """
    top = shallower.num_hidden_layers
    parameters = parameter_dict(model)
    for path, value in parameter_dict(shallower).items():
        if path not in {f".layers[{top}].{name}" for name in _DATA}:
            parameters[_path_in_deeper(path, top)].assign(value)
    added = model.layers[top].kernel
    if hasattr(added, "lengthscales"):
        scale = 1.0
        if top:
            scale = float(np.asarray(getattr(model.output_layer.kernel, "lengthscales", 1.0)))
            added.lengthscales.assign(scale)
        added.variance.assign(scale**2)
    make_nearly_linear(added)
    scales = model.hidden_layers[top].feature_scales
    if scales is not None:
        width = int(scales.shape[0])
        scales.assign(np.full(width, 1.0 / np.sqrt(width)))


def start_at_smaller(model: DeepKernelProcess, smaller: DeepKernelProcess) -> None:
    """Start a model where one with fewer inducing points has ended, which are its first ones.

    What belongs to the others stays as it is.

    :param model: The larger model, of which values are overwritten; its data stay.
    :param smaller: One of the same layers.
    """
    known = parameter_dict(smaller)
    for path, parameter in parameter_dict(model).items():
        old = known.get(path)
        if old is None or path.rpartition(".")[2] in (*_DATA, "precisions"):
            continue
        values = parameter.numpy().copy()
        values[tuple(slice(size) for size in old.shape)] = old.numpy()
        parameter.assign(values)


def make_nearly_linear(kernel: Kernel) -> None:
    """Stretch functions along both axes, so that a hidden layer hands on almost what came in."""
    for part in parts_of(kernel):
        if hasattr(part, "lengthscales"):
            part.lengthscales.assign(_STRETCH * part.lengthscales)
            part.variance.assign(_STRETCH**2 * part.variance)


def _path_in_deeper(path: str, top: int) -> str:
    """Where a parameter of the shallower model is in the deeper one.

    The kernel on the inputs, with lengthscales of theirs, stays below. Above it, functions have
    their variance from the output layer.
    """
    output = f".layers[{top}]."
    if not path.startswith(output):
        return path
    name = path.removeprefix(output)
    is_on_inputs = top == 0 and name.startswith("kernel.") and name != "kernel.variance"
    return path if is_on_inputs else f".layers[{top + 1}].{name}"
