"""Kernels in another floating-point type than that of their parameters."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import gpflow
import tensorflow as tf
from gpflow.kernels import Kernel

__all__ = ["kernel_in_dtype"]


def kernel_in_dtype(kernel: Kernel, dtype: tf.DType) -> Kernel:
    """Return a kernel whose parameters are those of ``kernel``, cast to ``dtype``.

    GPflow's kernels take inputs of their parameters' dtype only. The result is for one evaluation:
    it has the present parameters, through which gradients flow, and none of its own.

    :param kernel: Any GPflow kernel, frozen or not; not changed.
    :param dtype: float32 or float64.
    """
    constants = list(kernel._flatten(predicate=_is_constant))
    if all(each.dtype == dtype for each in kernel.parameters or constants):
        return kernel
    # A Keras layer, or one of TFP's objects, has a dtype that is not only its parts'.
    others = (m for m in kernel.submodules if hasattr(m, "dtype") and not isinstance(m, Kernel))
    memo: dict[int, Any] = {id(other): other for other in others}
    memo |= {id(each): tf.cast(each, dtype) for each in (*constants, *kernel.parameters)}
    twin: Kernel = copy.deepcopy(kernel, memo)
    for part in (twin, *twin.submodules):
        if isinstance(part, Kernel):
            for name in ("K", "K_diag"):
                # GPflow's ArcCosine has constants of the default type in its formulas.
                part.__dict__[name] = _with_default_float(getattr(part, name), dtype)
    return twin


def _is_constant(value: Any) -> bool:
    return isinstance(value, tf.Tensor) and value.dtype.is_floating


def _with_default_float(method: Callable[..., tf.Tensor], dtype: tf.DType) -> Any:
    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> tf.Tensor:
        config = dataclasses.replace(gpflow.config.config(), float=dtype.as_numpy_dtype)
        with gpflow.config.as_context(config):
            return method(*args, **kwargs)

    return wrapped
