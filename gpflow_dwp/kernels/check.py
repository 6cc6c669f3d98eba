"""Which kernels can act on a Gram matrix or on given inputs, and what to say about the others."""

from __future__ import annotations

from typing import Any

import gpflow
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
    Kernel: (
        "it is not known to be a function of inner products; use an IsotropicStationary kernel "
        "(SquaredExponential, Matern12, Matern32, Matern52, RationalQuadratic, Exponential, or a "
        "subclass of your own with K_r or K_r2), Linear, Polynomial, ArcCosine, Constant, White, "
        "or sums and products of these"
    ),
}
# Where none of these is changed, a registered formula is that of a kernel's class.
_FORMULA = ("__call__", "K", "K_diag", "scaled_squared_euclid_dist")
_SCALARS = ("variance", "lengthscales", "weight_variances")
_ALL_COLUMNS = (slice(None), slice(0, None), slice(0, None, 1))


def check_gram_kernel(kernel: Kernel) -> None:
    """Refuse a kernel that is not a function of inner products. Evaluates nothing.

    :param kernel: Any GPflow kernel; sums and products are checked part by part.
    :raises UnsupportedKernelError: If the kernel cannot act on a Gram matrix. The message says
        why, and what to use instead.
    """
    if not isinstance(kernel, Kernel):
        raise UnsupportedKernelError(f"expected a kernel from gpflow.kernels, got {kernel!r}")
    _check_kind(kernel)
    _check_columns(kernel)
    if isinstance(kernel, Combination):
        for part in kernel.kernels:
            check_gram_kernel(part)


def check_input_kernel(kernel: Kernel, num_columns: int) -> None:
    """Refuse a kernel that is not for inputs with so many columns.

    :param kernel: Any GPflow kernel.
    :param num_columns: Number of input columns, D.
    :raises ValueError: If the kernel has several outputs, or cannot be evaluated there: it has a
        value for each of other columns (ARD), its ``active_dims`` are not among them, or it takes
        other inputs, as a :class:`~gpflow.kernels.ChangePoints` takes one column.
    """
    if isinstance(kernel, MultioutputKernel):
        name, reason = type(kernel).__name__, _REASONS[MultioutputKernel]
        raise ValueError(f"{name} cannot be a hidden layer's kernel: {reason}")
    if not tf.executing_eagerly():
        return
    default = gpflow.default_float()  # of sums and products, and of kernels without a variance
    dtype = getattr(getattr(kernel, "variance", None), "dtype", default)
    points = tf.zeros([3, num_columns], dtype)
    try:
        with tf.device("CPU"):  # where columns that are not there are an error
            shape, reason = kernel(points).shape, ""
    except Exception as error:  # of whatever kind its formula meets
        shape, reason = None, f": {str(error).strip():.200}"
    parts = (part for part in (kernel, *kernel.submodules) if isinstance(part, Kernel))
    slices = (part.active_dims for part in parts if isinstance(part.active_dims, slice))
    if shape != [3, 3] or not all(range(num_columns)[columns] for columns in slices):
        raise ValueError(
            f"{type(kernel).__name__} cannot be the first kernel: it does not take inputs of "
            f"{num_columns} columns; look at active_dims and lengthscales for each column{reason}"
        )


def _check_kind(kernel: Kernel) -> None:
    kind = type(kernel)
    registered = next((c for c in kind.__mro__ if (c, Entries) in gram_kernel.funcs), None)
    if registered is None:
        raise _refusal(kernel, next(_REASONS[c] for c in _REASONS if isinstance(kernel, c)))
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
    active = kernel.active_dims
    if not (isinstance(active, slice) and active in _ALL_COLUMNS):
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


def _refusal(kernel: Kernel, reason: str) -> UnsupportedKernelError:
    return UnsupportedKernelError(f"{type(kernel).__name__} cannot act on a Gram matrix: {reason}")
