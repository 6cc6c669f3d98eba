"""Formulas of kernels as functions of inner products, and what they are evaluated on.

A kernel is registered once, as a function ``(kernel, entries) -> values`` that works entry by
entry; it serves matrices, cross-covariances and diagonals alike.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

import tensorflow as tf
from gpflow.kernels import (
    ArcCosine,
    Constant,
    IsotropicStationary,
    Linear,
    Matern52,
    Polynomial,
    Product,
    SquaredExponential,
    Sum,
    White,
)
from gpflow.utilities import Dispatcher

__all__ = ["Coinciding", "Entries", "gram_kernel", "of_squared_distances", "product_and_sum"]


class Coinciding(Enum):
    """Which entries pair a point with itself."""

    NONE = auto()
    """None: rows and columns are different points."""
    DIAGONAL = auto()
    """Those on the diagonal of the last two axes: rows and columns are the same points."""
    ALL = auto()
    """All of them: the diagonal of a matrix was taken before."""


class Entries(NamedTuple):
    """Pairs of points, through their inner products. The three tensors broadcast together.

    :param product: Inner product of the row's and the column's point, [..., M, N] or [..., N].
    :param row_norms: Squared norm of the row's point, [..., M, 1] or [..., N].
    :param column_norms: Squared norm of the column's point, [..., 1, N] or [..., N].
    :param coinciding: Which entries pair a point with itself.
    :param features: Features of rows and columns, [..., M, R] and [..., N, R], whose products
        ``product`` holds; None where they are not known. A formula that uses them alone leaves
        ``product`` to the graph compiler, which takes it away.
    """

    product: tf.Tensor
    row_norms: tf.Tensor
    column_norms: tf.Tensor
    coinciding: Coinciding
    features: tuple[tf.Tensor, tf.Tensor] | None = None


gram_kernel = Dispatcher("gram_kernel")
"""From a kernel and its :class:`Entries` to values that broadcast to the shape of the entries."""


@gram_kernel.register(Sum, Entries)
def _sum(kernel: Sum, entries: Entries) -> tf.Tensor:
    return functools.reduce(operator.add, (gram_kernel(part, entries) for part in kernel.kernels))


@gram_kernel.register(Product, Entries)
def _product(kernel: Product, entries: Entries) -> tf.Tensor:
    return functools.reduce(operator.mul, (gram_kernel(part, entries) for part in kernel.kernels))


@gram_kernel.register(Linear, Entries)
def _linear(kernel: Linear, entries: Entries) -> tf.Tensor:
    """σ² G_ij."""
    return kernel.variance * entries.product


@gram_kernel.register(Polynomial, Entries)
def _polynomial(kernel: Polynomial, entries: Entries) -> tf.Tensor:
    """(σ² G_ij + offset)^degree."""
    return (kernel.variance * entries.product + kernel.offset) ** kernel.degree


@gram_kernel.register(Constant, Entries)
def _constant(kernel: Constant, entries: Entries) -> tf.Tensor:
    """σ², left to broadcast."""
    return tf.convert_to_tensor(kernel.variance)


@gram_kernel.register(White, Entries)
def _white(kernel: White, entries: Entries) -> tf.Tensor:
    """σ² where a point meets itself, and only there: equal but different points share no noise."""
    variance = tf.convert_to_tensor(kernel.variance)
    if entries.coinciding is Coinciding.NONE:
        return tf.zeros_like(variance)
    if entries.coinciding is Coinciding.ALL:
        return variance
    return tf.linalg.diag(tf.fill([tf.shape(entries.product)[-1]], variance))


@gram_kernel.register(IsotropicStationary, Entries)
def _isotropic_stationary(kernel: IsotropicStationary, entries: Entries) -> tf.Tensor:
    """Any kernel that defines GPflow's element-wise ``K_r2`` or ``K_r``."""
    if entries.coinciding is Coinciding.ALL:
        return tf.convert_to_tensor(kernel.variance)
    return of_squared_distances(kernel, _scaled_square_distance(kernel, entries))


def of_squared_distances(kernel: IsotropicStationary, r2: tf.Tensor) -> tf.Tensor:
    """The kernel of r², which rounding may have made negative."""
    if type(kernel).K_r2 is not IsotropicStationary.K_r2:
        return kernel.K_r2(tf.maximum(r2, 0.0))
    if type(kernel).K_r is Matern52.K_r:
        return kernel.variance * _matern52(r2)
    return kernel.K_r2(r2)  # GPflow clips r² there, before it takes the root


@tf.custom_gradient
def _matern52(r2: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """(1 + a + a²/3) exp(-a), a = √5 r, of unit variance, in few passes; smooth at zero."""
    a, decay = _root_and_decay(r2)
    value = (1.0 + a + tf.square(a) / 3.0) * decay
    return value, lambda upstream: upstream * _matern52_slope(r2)


@tf.custom_gradient
def _matern52_slope(r2: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """Its derivative by r², -5/6 (1 + a) exp(-a)."""
    a, decay = _root_and_decay(r2)
    slope = -5.0 / 6.0 * (1.0 + a) * decay
    return slope, lambda upstream: 25.0 / 12.0 * upstream * _root_and_decay(r2)[1]


def _root_and_decay(r2: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    a = tf.sqrt(5.0 * tf.maximum(r2, 0.0))
    return a, tf.exp(-a)


@gram_kernel.register(SquaredExponential, Entries)
def _squared_exponential(kernel: SquaredExponential, entries: Entries) -> tf.Tensor:
    """exp(log σ² + (G_ij - G_ii/2 - G_jj/2) / ℓ²): the common kernel, in fewer passes.

    Rounding below zero distance does no harm here, so nothing is clipped, and diagonals are left.
    Where features are known, the exponent is a product of features with two columns more, so that
    the exponential is the only pass over the matrix.
    """
    if type(kernel).K_r2 is not SquaredExponential.K_r2:
        return _isotropic_stationary(kernel, entries)
    if entries.coinciding is Coinciding.ALL:
        return tf.convert_to_tensor(kernel.variance)
    square = tf.square(kernel.lengthscales)
    row = square * tf.math.log(kernel.variance) - 0.5 * entries.row_norms
    column = -0.5 * entries.column_norms
    if entries.features is None:
        return tf.exp((entries.product + row + column) / square)
    of_rows, of_columns = entries.features
    return tf.exp(product_and_sum(of_rows, row, of_columns, column, scale=1.0 / square))


def product_and_sum(
    of_rows: tf.Tensor, row: tf.Tensor, of_columns: tf.Tensor, column: tf.Tensor, scale: tf.Tensor
) -> tf.Tensor:
    """Return s (F Hᵀ + r + c), [..., M, N], in one pass over the matrix.

    :param of_rows: Features of rows, F, [..., M, R].
    :param row: What is added to each row, r, [..., M, 1].
    :param of_columns: Features of columns, H, [..., N, R].
    :param column: What is added to each column, c, [..., 1, N].
    :param scale: What all is multiplied by, s, [].
    """
    # Long rows make for faster products than long columns, also in the gradient.
    of_columns = tf.linalg.matrix_transpose(of_columns)
    left = tf.concat([of_rows, row, tf.ones_like(row)], axis=-1)
    right = tf.concat([of_columns, tf.ones_like(column), column], axis=-2)
    return tf.matmul(scale * left, right)


def _scaled_square_distance(kernel: IsotropicStationary, entries: Entries) -> tf.Tensor:
    """r², not clipped. The scale meets the norms before they are spread over the matrix."""
    precision = 1.0 / tf.square(kernel.lengthscales)
    if entries.coinciding is Coinciding.NONE and entries.features is not None:
        of_rows, of_columns = entries.features
        row, column = -0.5 * entries.row_norms, -0.5 * entries.column_norms
        return product_and_sum(of_rows, row, of_columns, column, scale=-2.0 * precision)
    norms = precision * entries.row_norms + precision * entries.column_norms
    r2 = norms - 2.0 * precision * entries.product
    if entries.coinciding is Coinciding.DIAGONAL:
        # Zero in exact arithmetic; set, so that the root of a rounding error has no gradient.
        r2 = tf.linalg.set_diag(r2, tf.zeros(tf.shape(r2)[:-1], r2.dtype))
    return r2


@gram_kernel.register(ArcCosine, Entries)
def _arc_cosine(kernel: ArcCosine, entries: Entries) -> tf.Tensor:
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
    these, only order 0 meets the infinity, and there it is a zero (Cho and Saul, "Kernel methods
    for deep learning", 2009, equations 3 to 6).
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
