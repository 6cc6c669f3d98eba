"""Kernels as values, which cost nothing to make, copy and change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.kernels import Kernel, Linear, Sum

__all__ = [
    "Part",
    "Parts",
    "as_kernel",
    "inverse_scales",
    "is_of_one_input",
    "parts_of",
    "values_of",
]


class Part(NamedTuple):
    """A stationary kernel, or a linear one, as values.

    :param kind: GPflow's class of it.
    :param lengthscales: One, [], or one for each input, [D]; of a line none, [0].
    :param active_dims: Of which inputs it is.
    :param categories: As of a :class:`LevelsMatern52`; none of any other kernel.
    """

    kind: type[Kernel]
    variance: float
    lengthscales: npt.NDArray[np.float64]
    active_dims: slice | Sequence[int] = slice(None)
    categories: tuple[int, ...] = ()


Parts = tuple[Part, ...]
"""The terms of a sum, or a kernel by itself."""


def as_kernel(parts: Parts) -> Kernel:
    """Make GPflow's kernel of these values, a sum if there are several."""
    kernels = []
    for kind, variance, lengthscales, active_dims, categories in parts:
        make: Callable[..., Kernel] = kind
        given: dict[str, Any] = {"lengthscales": lengthscales} if np.size(lengthscales) else {}
        given |= {"categories": categories} if categories else {}
        kernels.append(make(variance, **given, active_dims=active_dims))
    return kernels[0] if len(kernels) == 1 else Sum(kernels)


def values_of(kernel: Kernel) -> Parts:
    """The present values of a kernel, or of the terms of a sum, all stationary or linear."""
    return tuple(
        Part(
            type(part),
            float(part.variance.numpy()),
            np.empty(0) if type(part) is Linear else part.lengthscales.numpy(),
            part.active_dims,
            tuple(getattr(part, "categories", ())),
        )
        for part in parts_of(kernel)
    )


def parts_of(kernel: Kernel) -> list[Kernel]:
    """The terms of a sum; of any other kernel itself."""
    return list(kernel.kernels) if type(kernel) is Sum else [kernel]


def inverse_scales(parts: Iterable[Kernel | Part], num_inputs: int) -> tf.Tensor:
    r"""How fast covariances fall along each input, [D]: of one stationary part 1 / lengthscales.

    Of several it is :math:`(\sum_p \sigma_p^2 \ell_{pj}^{-2} / \sum_p \sigma_p^2)^{1/2}`, that of
    squared exponentials near zero; a line has none. An indicator has what its point is from zero.
    """
    falls, total = tf.zeros(num_inputs, tf.float64), tf.zeros([], tf.float64)
    for part in parts:
        scales = getattr(part, "lengthscales", None)
        if scales is not None and 0 not in scales.shape:
            variance = tf.cast(part.variance, tf.float64)
            columns = tf.constant(np.eye(num_inputs)[part.active_dims])
            squares = tf.cast(scales, tf.float64) ** -2.0
            if len(categories := np.asarray(getattr(part, "categories", ()))):
                of_levels = tf.scatter_nd(
                    np.flatnonzero(categories)[:, None], squares[num_inputs:], [num_inputs]
                )
                squares = squares[:num_inputs] + of_levels
            of_columns = tf.broadcast_to(squares, columns.shape[:1])
            falls += variance * tf.linalg.matvec(columns, of_columns, transpose_a=True)
            total += variance
    return tf.sqrt(falls / tf.maximum(total, 1e-300))


def is_of_one_input(kernel: Kernel | Part) -> bool:
    """Whether a kernel is of a single column that it names."""
    return not isinstance(kernel.active_dims, slice) and len(kernel.active_dims) == 1
