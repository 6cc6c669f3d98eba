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


def kernel_in_dtype(kernel: Kernel, dtype: tf.DType) -> Kernel:
    """Return a kernel whose parameters are those of ``kernel``, cast to ``dtype``.

    GPflow's kernels take inputs of their parameters' dtype only. The result is for one evaluation:
    it has the present parameters, through which gradients flow, and none of its own.

    :param kernel: Any GPflow kernel, frozen or not; not changed.
    :param dtype: float32 or float64.
    """
    if kernel.parameters and all(parameter.dtype == dtype for parameter in kernel.parameters):
        return kernel
    twin = copy.copy(kernel)
    for name, value in vars(kernel).items():
        # Past the module's own attribute setter, which would track what is set.
        twin.__dict__[name] = _cast(value, dtype)
    for name in ("K", "K_diag"):
        # GPflow's ArcCosine has constants of the default type in its formulas.
        twin.__dict__[name] = _with_default_float(getattr(twin, name), dtype)
    return twin


def _with_default_float(method: Callable[..., tf.Tensor], dtype: tf.DType) -> Any:
    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> tf.Tensor:
        config = dataclasses.replace(gpflow.config.config(), float=dtype.as_numpy_dtype)
        with gpflow.config.as_context(config):
            return method(*args, **kwargs)

    return wrapped


def _cast(value: Any, dtype: tf.DType) -> Any:
    if isinstance(value, Parameter) or (tf.is_tensor(value) and value.dtype.is_floating):
        return tf.cast(value, dtype)
    if isinstance(value, Kernel):
        return kernel_in_dtype(value, dtype)
    if isinstance(value, list | tuple) and any(isinstance(part, Kernel) for part in value):
        return [_cast(part, dtype) for part in value]
    return value
