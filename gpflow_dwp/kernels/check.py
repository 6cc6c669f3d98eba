"""Which kernels can act on a Gram matrix or on given inputs, and what to say about the others."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.kernels import (
    AnisotropicStationary,
    ChangePoints,
    Combination,
    Coregion,
    IsotropicStationary,
    Kernel,
    MultioutputKernel,
    Periodic,
)

from gpflow_dwp.exceptions import UnsupportedKernelError
from gpflow_dwp.kernels._formulas import Entries, gram_kernel

__all__ = ["check_gram_kernel", "check_input_kernel"]

_REASONS: dict[type[Any], str] = {
    MultioutputKernel: (
        "it has several outputs, which only an output layer takes, and its features are not "
        "those; use that kernel by itself"
    ),
    Coregion: (
        "its inputs are indices of outputs, which a Gram matrix does not hold; "
        "use one kernel for all outputs"
    ),
    Periodic: (
        "it needs each input column, and a Gram matrix has only their inner products; "
        "use it in the first layer, and an isotropic kernel such as SquaredExponential here"
    ),
    ChangePoints: (
        "it switches at positions along an input column, and a Gram matrix has no columns; "
        "use it in the first layer, and a sum of its kernels here"
    ),
    AnisotropicStationary: (
        "it depends on the direction between two points, and a Gram matrix gives only their "
        "distance; use an isotropic kernel such as SquaredExponential"
    ),
}
_UNKNOWN = (
    "it is not known to be a function of inner products; use an IsotropicStationary kernel "
    "(SquaredExponential, Matern12, Matern32, Matern52, RationalQuadratic, Exponential, or a "
    "subclass of your own with K_r or K_r2), Linear, Polynomial, ArcCosine, Constant, White, or "
    "sums and products of these"
)
# What the formulas of GPflow's kernels are made of. Where none of it is changed, a registered
# formula, which calls K_r2 and K_r alone, is that of a kernel's class.
_FORMULA = (
    "__call__",
    "K",
    "K_diag",
    "slice",
    "scale",
    "scaled_squared_euclid_dist",
    "_diag_weighted_product",
    "_full_weighted_product",
    "_J",
    "_reduce",
)
_SCALARS = ("variance", "lengthscales", "weight_variances")
# Parameters that may have one value for each active column of the inputs.
_BY_COLUMN = (*_SCALARS, "period")


def check_gram_kernel(kernel: Kernel) -> None:
    """Refuse a kernel that is not a function of inner products. Evaluates nothing.

    :param kernel: Any GPflow kernel; sums and products are checked part by part.
    :raises UnsupportedKernelError: If the kernel cannot act on a Gram matrix. The message says
        why, and what to use instead.
    """
    if isinstance(kernel, type):
        raise UnsupportedKernelError(
            f"expected a kernel, got the class {kernel.__name__}; pass {kernel.__name__}()"
        )
    if not isinstance(kernel, Kernel):
        raise UnsupportedKernelError(
            f"expected a kernel from gpflow.kernels, got {type(kernel).__name__}"
        )
    _check_kind(kernel)
    _check_columns(kernel)
    if isinstance(kernel, Combination):
        for part in kernel.kernels:
            check_gram_kernel(part)


def check_input_kernel(kernel: Kernel, num_columns: int) -> None:
    """Refuse a kernel that is not for inputs with so many columns.

    :param kernel: Any GPflow kernel; sums and products are checked part by part.
    :param num_columns: Number of input columns, D.
    :raises ValueError: If the kernel has several outputs, ``active_dims`` are not among the
        columns, a parameter with one value for each of them (ARD) has another number of values, or
        it takes other inputs, as a :class:`~gpflow.kernels.ChangePoints` takes one column.
    """
    _check_parts(kernel, num_columns)
    if not tf.executing_eagerly():
        return
    default = gpflow.default_float()  # of sums and products, and of kernels without a variance
    dtype = getattr(getattr(kernel, "variance", None), "dtype", default)
    points = tf.zeros([3, num_columns], dtype)
    try:
        shape, reason = kernel(points).shape, ""
    except Exception as error:  # of whatever kind its formula meets
        shape, reason = None, f": {str(error).strip():.200}"
    if shape != [3, 3]:
        raise ValueError(
            f"{type(kernel).__name__} cannot be the first kernel: it does not take inputs of "
            f"{num_columns} columns{reason}"
        )


def _check_parts(kernel: Kernel, num_columns: int) -> None:
    if isinstance(kernel, MultioutputKernel):
        raise ValueError(
            f"{type(kernel).__name__} cannot be a hidden layer's kernel: it has several outputs; "
            "use that kernel by itself."
        )
    active = kernel.active_dims
    columns = np.arange(num_columns)
    if isinstance(active, slice):
        fits = bool(columns[active].size) and (active.stop or 0) <= num_columns
    else:
        fits = bool(np.isin(active, columns).all())
    if not fits:
        raise ValueError(
            f"active_dims of {type(kernel).__name__} must be among the {num_columns} columns of "
            f"the inputs, from 0 to {num_columns - 1}, got {active}."
        )
    num_active = len(columns[active] if isinstance(active, slice) else active)
    for name in _BY_COLUMN:
        shape: Any = getattr(getattr(kernel, name, None), "shape", ())
        if len(shape) == 1 and shape[0] not in (1, num_active):
            raise ValueError(
                f"{name} of {type(kernel).__name__} must have one value for each of the "
                f"{num_active} columns that it acts on, got {shape[0]}."
            )
    parts = kernel.kernels if isinstance(kernel, Combination) else []
    for part in [kernel.base_kernel] if isinstance(kernel, Periodic) else parts:
        _check_parts(part, num_columns)


def _check_kind(kernel: Kernel) -> None:
    kind = type(kernel)
    registered = next((c for c in kind.__mro__ if (c, Entries) in gram_kernel.funcs), None)
    if registered is None:
        reasons = (reason for refused, reason in _REASONS.items() if isinstance(kernel, refused))
        raise _refusal(kernel, next(reasons, _UNKNOWN))
    for method in _FORMULA:
        known = getattr(registered, method, None)
        if known is not None and getattr(kind, method) is not known:
            raise _refusal(
                kernel,
                f"it overrides {registered.__name__}.{method}, and only {registered.__name__}'s "
                f"own formula is known here; use {registered.__name__}, or derive from "
                "IsotropicStationary and define K_r or K_r2",
            )
    own_r2 = getattr(kind, "K_r2", None) is not IsotropicStationary.K_r2
    if isinstance(kernel, IsotropicStationary) and not (own_r2 or hasattr(kernel, "K_r")):
        raise _refusal(kernel, "it defines neither K_r nor K_r2; define one of them")


def _check_columns(kernel: Kernel) -> None:
    if not _all_columns(kernel.active_dims):
        raise _refusal(
            kernel,
            "it has active_dims, and a Gram matrix has no columns to choose from; "
            "use active_dims in the first layer only",
        )
    for name in _SCALARS:
        shape = getattr(getattr(kernel, name, None), "shape", None)
        if shape is not None and shape.rank:
            raise _refusal(
                kernel,
                f"its {name} has shape {list(shape)}, one value for each input column (ARD), and "
                f"a Gram matrix has no columns; pass {name} as one number, and use ARD in the "
                "first layer only",
            )


def _all_columns(active_dims: Any) -> bool:
    """Whether every column is used, however many there are."""
    return (
        isinstance(active_dims, slice)
        and active_dims.start in (None, 0)
        and active_dims.stop is None
        and active_dims.step in (None, 1)
    )


def _refusal(kernel: Kernel, reason: str) -> UnsupportedKernelError:
    return UnsupportedKernelError(f"{type(kernel).__name__} cannot act on a Gram matrix: {reason}")
