"""Sums and products of kernels, by recursion, whose gradients have the type of the entries."""

from __future__ import annotations

from functools import reduce
from operator import add, mul

import tensorflow as tf
from gpflow.kernels import Combination, Product, Sum

from gpflow_dwp.kernels._dispatch import Entries, gram_kernel

__all__ = ["kernel_product", "kernel_sum"]


@gram_kernel.register(Sum, Entries)
def kernel_sum(kernel: Sum, entries: Entries) -> tf.Tensor:
    """Sum of the kernels' values."""
    return reduce(add, _parts(kernel, entries))


@gram_kernel.register(Product, Entries)
def kernel_product(kernel: Product, entries: Entries) -> tf.Tensor:
    """Product of the kernels' values."""
    return reduce(mul, _parts(kernel, entries))


def _parts(kernel: Combination, entries: Entries) -> list[tf.Tensor]:
    return [gram_kernel(part, entries) for part in kernel.kernels]
