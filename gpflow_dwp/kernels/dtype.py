"""Kernels in another floating-point type than that of their parameters."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import gpflow
import tensorflow as tf
from gpflow import Parameter
from gpflow.kernels import Kernel

__all__ = ["kernel_in_dtype"]

_TRACKING = "_self_"
"""How the names of TensorFlow's own attributes of a module begin; they list its parts once more."""


def kernel_in_dtype(kernel: Kernel, dtype: tf.DType) -> Kernel:
    """Return a kernel whose parameters are those of ``kernel``, cast to ``dtype``.

    GPflow's kernels take inputs of their parameters' dtype only. The result is for one evaluation:
    it has the present parameters, through which gradients flow, and none of its own.

    :param kernel: Any GPflow kernel, frozen or not; not changed.
    :param dtype: float32 or float64.
    """
    cast: Kernel = _cast(kernel, dtype, {})
    return cast


def _with_default_float(method: Callable[..., tf.Tensor], dtype: tf.DType) -> Any:
    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> tf.Tensor:
        config = dataclasses.replace(gpflow.config.config(), float=dtype.as_numpy_dtype)
        with gpflow.config.as_context(config):
            return method(*args, **kwargs)

    return wrapped


def _cast(value: Any, dtype: tf.DType, done: dict[int, Any]) -> Any:
    """Cast what a kernel is made of, each part once: ``done`` has the results by identity."""
    if id(value) not in done:
        done[id(value)] = value  # what a list that holds itself finds
        done[id(value)] = _cast_part(value, dtype, done)
    return done[id(value)]


def _cast_part(value: Any, dtype: tf.DType, done: dict[int, Any]) -> Any:
    if isinstance(value, Parameter) or (tf.is_tensor(value) and value.dtype.is_floating):
        return tf.cast(value, dtype)
    if isinstance(value, tf.Module):
        return _cast_module(value, dtype, done)
    if isinstance(value, dict):
        parts = {key: _cast(part, dtype, done) for key, part in value.items()}
        return parts if any(parts[key] is not part for key, part in value.items()) else value
    if isinstance(value, list | tuple):
        items = [_cast(part, dtype, done) for part in value]
        if all(item is part for item, part in zip(items, value, strict=True)):
            return value
        return items if isinstance(value, list) else getattr(value, "_make", tuple)(items)
    return value


def _cast_module(module: tf.Module, dtype: tf.DType, done: dict[int, Any]) -> Any:
    is_kernel = isinstance(module, Kernel)
    if hasattr(module, "dtype") and not is_kernel:
        return module  # a Keras layer, or one of TFP's objects, whose dtype is not only its parts'
    if is_kernel and module.parameters and all(each.dtype == dtype for each in module.parameters):
        return module
    twin = copy.copy(module)
    done[id(module)] = twin
    for name, value in vars(module).items():
        if not name.startswith(_TRACKING):
            # Past the module's own attribute setter, which would track what is set.
            twin.__dict__[name] = _cast(value, dtype, done)
    if is_kernel:
        for name in ("K", "K_diag"):
            # GPflow's ArcCosine has constants of the default type in its formulas.
            twin.__dict__[name] = _with_default_float(getattr(twin, name), dtype)
    return twin
