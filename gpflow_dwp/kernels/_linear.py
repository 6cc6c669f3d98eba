"""Kernels that are functions of the inner product itself."""

from __future__ import annotations

import tensorflow as tf
from gpflow.kernels import Linear, Polynomial

from gpflow_dwp.kernels._dispatch import Entries, gram_kernel

__all__ = ["linear", "polynomial"]


@gram_kernel.register(Linear, Entries)
def linear(kernel: Linear, entries: Entries) -> tf.Tensor:
    """σ² G_ij."""
    return kernel.variance * entries.product


@gram_kernel.register(Polynomial, Entries)
def polynomial(kernel: Polynomial, entries: Entries) -> tf.Tensor:
    """(σ² G_ij + offset)^degree."""
    return (kernel.variance * entries.product + kernel.offset) ** kernel.degree
