"""Kernels that can be asked for by name."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.kernels import Kernel, Linear, Sum

from gpflow_dwp.kernels import LevelsMatern52, SeparableMatern52, additive_kernel
from gpflow_dwp.kernels.values import is_of_one_input
from gpflow_dwp.validation import check_choice

__all__ = ["KERNELS", "SUMS", "kernel_name", "make_kernels", "positive_by_exp"]

_Part = TypeVar("_Part", bound=tf.Module)

SUMS = {
    f"Additive{base.__name__}": base
    for base in (
        gpflow.kernels.Matern32,
        gpflow.kernels.Matern52,
        gpflow.kernels.SquaredExponential,
    )
}
KERNELS: dict[str, Callable[..., Kernel]] = {
    name: functools.partial(additive_kernel, base) for name, base in SUMS.items()
} | {
    kernel.__name__: kernel
    for kernel in (
        gpflow.kernels.ArcCosine,
        gpflow.kernels.Exponential,
        LevelsMatern52,
        gpflow.kernels.Matern12,
        gpflow.kernels.Matern32,
        gpflow.kernels.Matern52,
        gpflow.kernels.RationalQuadratic,
        SeparableMatern52,
        gpflow.kernels.SquaredExponential,
    )
}
"""Kernels that can be asked for by name, with relevance determination in the first layer.

An additive one (:func:`gpflow_dwp.kernels.additive_kernel`), a separable one and one of levels are
of inputs: hidden layers, which have none, get the one of distances. One of levels by its name takes
all inputs to be numbers, unless it is chosen."""


def kernel_name(kernel: Kernel) -> str:
    """The name of a kernel in :data:`KERNELS`, or of its class where it has none there."""
    if type(kernel) is Sum and len(kernel.kernels) > 2 and type(kernel.kernels[1]) is Linear:
        joint, _, *singles = kernel.kernels
        if all(type(each) is type(joint) and is_of_one_input(each) for each in singles):
            return f"Additive{type(joint).__name__}"
    return type(kernel).__name__


def make_kernels(
    kernel: str | Kernel | Sequence[str | Kernel], depth: int, num_inputs: int, scale: float = 1.0
) -> list[Kernel]:
    """Make one kernel for each layer.

    :param kernel: A name in :data:`KERNELS`; a kernel, of which each layer gets a copy; or
        ``depth`` names and kernels, bottom first.
    :param depth: Number of layers.
    :param num_inputs: Number of lengthscales, D, of the first kernel where it has a name.
    :param scale: Where these start.
    :raises ValueError: If a name is unknown, something is no kernel, or the number of kernels is
        not ``depth``.
    """
    if isinstance(kernel, Kernel):
        return [copy.deepcopy(kernel) for _ in range(depth)]
    kernels = [kernel] * depth if isinstance(kernel, str) else kernel
    if not isinstance(kernels, Sequence):
        raise ValueError(
            f"kernel must be a name, a kernel or a sequence of depth={depth} of them, got "
            f"{kernel!r}."
        )
    if len(kernels) != depth:
        raise ValueError(f"kernel must hold depth={depth} kernels, got {len(kernels)}.")
    return [
        one if isinstance(one, Kernel) else _named(one, *([scale] * num_inputs if i == 0 else []))
        for i, one in enumerate(kernels)
    ]


def _named(name: str, *lengthscales: float) -> Kernel:
    check_choice(KERNELS, kernel=name)
    if not lengthscales:  # hidden layers have kernels of distances
        name = name.removeprefix("Separable").removeprefix("Additive").removeprefix("Levels")
    scales = np.array(lengthscales)
    start = {"weight_variances": scales**-2.0} if name == "ArcCosine" else {"lengthscales": scales}
    return positive_by_exp(KERNELS[name](**(start if lengthscales else {})))


def positive_by_exp(part: _Part) -> _Part:
    """Give positive parameters of a new kernel or likelihood a logarithmic scale; return it.

    Adam's steps then change variances and lengthscales by one factor, however large they are; with
    GPflow's default, softplus, large values are slow to reach.
    """
    for module in (part, *part.submodules):
        for name, value in list(vars(module).items()):
            if isinstance(value, gpflow.Parameter) and value.transform is not None:
                *shift, last = getattr(value.transform, "bijectors", [value.transform])
                if isinstance(last, tfp.bijectors.Softplus):
                    transform = tfp.bijectors.Chain([*shift, tfp.bijectors.Exp()])
                    transform = transform if shift else tfp.bijectors.Exp()
                    setattr(module, name, gpflow.Parameter(value, transform=transform))
    return part
