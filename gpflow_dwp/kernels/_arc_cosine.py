"""The arc-cosine kernel: the covariance of an infinitely wide layer of rectified monomials.

Reference: Cho and Saul, "Kernel methods for deep learning", 2009, equations 3 to 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf
from gpflow.kernels import ArcCosine

from gpflow_dwp.kernels._dispatch import Coinciding, Entries, gram_kernel

__all__ = ["arc_cosine"]


@gram_kernel.register(ArcCosine, Entries)
def arc_cosine(kernel: ArcCosine, entries: Entries) -> tf.Tensor:
    """σ²/π (n_i n_j)^order J_order(θ), with n_i² = w G_ii + b and n_i n_j cos θ = w G_ij + b."""
    row_squares = kernel.weight_variances * entries.row_norms + kernel.bias_variance
    scale = kernel.variance / math.pi
    if entries.coinciding is Coinciding.ALL:
        at_zero = _angular(kernel.order)(tf.ones([], row_squares.dtype))
        return scale * at_zero * row_squares**kernel.order
    row = tf.sqrt(row_squares)
    column = tf.sqrt(kernel.weight_variances * entries.column_norms + kernel.bias_variance)
    product = kernel.weight_variances * entries.product + kernel.bias_variance
    cosine = tf.clip_by_value(product / row / column, -1.0, 1.0)
    if entries.coinciding is Coinciding.DIAGONAL:
        cosine = tf.linalg.set_diag(cosine, tf.ones(tf.shape(cosine)[:-1], cosine.dtype))
    values = _angular(kernel.order)(cosine)
    if kernel.order == 0:
        return scale * values
    return scale * row**kernel.order * values * column**kernel.order


def _angular(order: int) -> Callable[[tf.Tensor], tf.Tensor]:
    """J_order as a function of cos θ.

    GPflow's own ``ArcCosine._J`` is a function of θ, whose derivative is infinite at 0 and π,
    where J_1 and J_2 are smooth in cos θ: J_2' = 4 J_1, J_1' = J_0, J_0' = 1 / sin θ. Written with
    these, only order 0 meets the infinity, and there it is a zero.
    """

    @tf.custom_gradient
    def angular(cosine: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        angle = math.pi - tf.acos(cosine)
        sine_square = (1.0 - cosine) * (1.0 + cosine)
        if order == 0:
            value = angle
        elif order == 1:
            value = tf.sqrt(sine_square) + angle * cosine
        else:
            value = 3.0 * tf.sqrt(sine_square) * cosine + angle * (1.0 + 2.0 * tf.square(cosine))

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            if order == 0:
                inside = sine_square > 0.0
                finite = tf.math.rsqrt(tf.where(inside, sine_square, 1.0))
                return upstream * tf.where(inside, finite, 0.0)
            return upstream * (1.0 if order == 1 else 4.0) * _angular(order - 1)(cosine)

        return value, gradient

    return angular
