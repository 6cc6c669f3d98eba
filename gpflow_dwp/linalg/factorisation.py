"""Factorised covariances.

A covariance K is factorised once, K = L Lᵀ. Every function of this package sends its gradient
straight to K, in as few products as its formula has, instead of through the factorisation. These
products have L in them, which is a function of K there: second derivatives are right, too.

Gradients are those of what is computed, jitter included. A jitter that grows with a kernel's
variance but is a constant for gradients makes that variance grow without limit where features are
nearly linear in what is below: then large variances with long lengthscales fit best, and only the
jitter, which becomes white noise of the features, holds them back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow import default_jitter

from gpflow_dwp.base import sizes
from gpflow_dwp.exceptions import CholeskyError
from gpflow_dwp.validation import check_not_negative

__all__ = [
    "Factorised",
    "Gradient",
    "Tensors",
    "as_jitter",
    "cholesky",
    "factorise",
    "half_lower",
    "relative_jitter",
    "sum_to",
    "unwhiten_both_sides",
    "weighted_gram",
    "whiten_both_sides",
]

Tensors = tuple[tf.Tensor | None, ...]
"""One tensor for each argument or result; None for the gradient of a constant."""

Gradient = Callable[..., Tensors]
"""From the gradients of a function's results to those of its arguments."""

_JITTER_GROWTH = 10.0
_MAX_ATTEMPTS = 5


class Factorised(NamedTuple):
    """A positive definite matrix with its Cholesky factor.

    :param matrix: K with its jitter, [..., M, M], where gradients go.
    :param tril: Its Cholesky factor, L, [..., M, M], as a function of K. Jitter that was added
        because a factorisation failed is in L alone.
    """

    matrix: tf.Tensor
    tril: tf.Tensor


def as_jitter(jitter: float | None) -> float:
    """Make a number of what a layer was given as its jitter.

    :param jitter: A finite number of at least 0; None for GPflow's ``default_jitter()`` at present.
    :raises ValueError: If it is neither.
    """
    if jitter is None:
        return float(default_jitter())
    check_not_negative(jitter=jitter)
    if isinstance(jitter, bool) or not np.isfinite(jitter):
        raise ValueError(f"jitter must be a finite number, got {jitter!r}.")
    return float(jitter)


@check_shapes("matrix: [batch..., M, M]", "return: [batch...]")
def relative_jitter(matrix: tf.Tensor, jitter: float) -> tf.Tensor:
    """Turn a relative jitter into what is added to the diagonal of ``matrix``.

    :param matrix: Covariance matrices, [..., M, M].
    :param jitter: Jitter as a fraction of the mean of the diagonal (for a stationary kernel: of
        its variance).
    :return: The absolute jitter of each matrix, [...].
    """
    return jitter * _mean_diagonal(matrix)


@tf.custom_gradient
def _mean_diagonal(matrix: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
    def gradient(bar: tf.Tensor) -> tf.Tensor:
        size = sizes(matrix)[-1]  # to scale an identity is quicker than to make a diagonal matrix
        return bar[..., None, None] * (tf.eye(size, dtype=bar.dtype) / tf.cast(size, bar.dtype))

    return tf.reduce_mean(tf.linalg.diag_part(matrix), axis=-1), gradient


@check_shapes(
    "matrix: [batch..., M, M]",
    "jitter: [batch...]",
    "return.matrix: [batch..., M, M]",
    "return.tril: [batch..., M, M]",
)
def factorise(
    matrix: tf.Tensor,
    jitter: tf.Tensor | None,
    *,
    name: str = "matrix",
    max_attempts: int = _MAX_ATTEMPTS,
) -> Factorised:
    """Factorise ``matrix + jitter I``.

    Where that fails, the jitter of that matrix alone grows tenfold, ``max_attempts`` times at most;
    what is added then is a constant for gradients.

    :param matrix: Symmetric positive (semi-)definite matrices, [..., M, M].
    :param jitter: What is added to the diagonal of each matrix, [...]; None for nothing.
    :param name: What the matrix is, for the error message.
    :param max_attempts: How often the jitter may grow.
    :return: ``matrix + jitter I`` and its factor. In a compiled function a matrix whose
        factorisation failed with every jitter has NaN throughout its lower triangle.
    :raises CholeskyError: If, in eager mode, the factorisation fails with every jitter.
    """
    if jitter is None:
        jitter = tf.zeros_like(matrix[..., 0, 0])
    else:
        matrix = _add_to_diagonal(matrix, jitter)
    tril = _escalating_cholesky(tf.stop_gradient(matrix), tf.stop_gradient(jitter), max_attempts)
    if tf.executing_eagerly() and not bool(tf.reduce_all(tf.math.is_finite(tril))):
        largest = float(tf.reduce_max(jitter))
        tried = f", even with a jitter of {_JITTER_GROWTH**max_attempts:g} times {largest:.3g}"
        raise CholeskyError(
            f"The Cholesky decomposition of {name} failed{tried if largest else ''}. "
            "Check the data and the parameters for NaN, the kernel's lengthscales for extreme "
            "features, or lower the learning rate."
        )
    return Factorised(matrix, _factor_of(matrix, tf.stop_gradient(tril)))


@check_shapes("factorised.tril: [batch..., M, M]", "return: [batch..., M, M]")
def cholesky(factorised: Factorised) -> tf.Tensor:
    r"""Return L, [..., M, M], as a function of K.

    With low(X) the lower triangle of X with half its diagonal,
    :math:`\bar K = L^{-T} \operatorname{low}(L^T \bar L) L^{-1}`, up to symmetrisation.
    """
    return factorised.tril


@tf.custom_gradient
def _factor_of(matrix: tf.Tensor, tril: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
    """L, which is known, as a function of K: see :func:`cholesky`."""

    def gradient(tril_bar: tf.Tensor) -> Tensors:
        factor = _factor_of(matrix, tril)
        inner = half_lower(tf.matmul(factor, tril_bar, transpose_a=True))
        return unwhiten_both_sides(factor, inner), None

    return tf.identity(tril), gradient


@tf.custom_gradient
def _add_to_diagonal(matrix: tf.Tensor, jitter: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
    """A + j I, without the copies of A that the gradient of ``set_diag`` makes."""
    diagonal = tf.linalg.diag_part(matrix) + tf.expand_dims(jitter, -1)
    return tf.linalg.set_diag(matrix, diagonal), lambda bar: (bar, tf.linalg.trace(bar))


@tf.custom_gradient
def weighted_gram(rows: tf.Tensor, weights: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
    r"""Return A diag(w) Aᵀ, with one product in the gradient, where TensorFlow takes two.

    With :math:`B = (\bar G + \bar G^T) A` that is :math:`\bar A = B \operatorname{diag}(w)` and
    :math:`\bar w_j = \tfrac12 \sum_i A_{ij} B_{ij}`.

    :param rows: The matrix, A, [M, R].
    :param weights: Of its columns, w, [R].
    """

    def gradient(gram_bar: tf.Tensor) -> Tensors:
        product = tf.matmul(gram_bar + tf.transpose(gram_bar), rows)
        return product * weights, 0.5 * tf.reduce_sum(rows * product, axis=0)

    return tf.matmul(rows * weights, rows, transpose_b=True), gradient


def _escalating_cholesky(matrix: tf.Tensor, jitter: tf.Tensor, max_attempts: int) -> tf.Tensor:
    """The factor of a matrix that has its jitter, or of one with more of it where that fails."""
    tril = tf.linalg.cholesky(matrix)

    def escalated() -> tf.Tensor:
        size = sizes(matrix)[-1]
        flat = tf.reshape(matrix, [-1, size, size])
        escalate = _escalation(matrix.dtype, max_attempts)
        found = tf.reshape(escalate(flat, tf.reshape(jitter, [-1])), tf.shape(matrix))
        return tf.ensure_shape(found, matrix.shape)

    return tf.cond(_succeeded(tril, None), lambda: tril, escalated)


def _succeeded(tril: tf.Tensor, axis: tuple[int, int] | None = (-2, -1)) -> tf.Tensor:
    # The last row of a factor depends on all that comes before it; one of no rows has none.
    return tf.reduce_all(tf.math.is_finite(tril[..., -1:, :]), axis=axis)


@functools.cache
def _escalation(dtype: tf.DType, max_attempts: int) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """:func:`_escalate`, traced once for all shapes: every step has it, and hardly one calls it."""
    return tf.function(
        functools.partial(_escalate, max_attempts=max_attempts),
        input_signature=[tf.TensorSpec([None] * 3, dtype), tf.TensorSpec([None], dtype)],
        autograph=False,
        experimental_attributes={"_noinline": True},
    )


def _escalate(matrix: tf.Tensor, jitter: tf.Tensor, *, max_attempts: int) -> tf.Tensor:
    """Factorise matrices, [B, M, M], with jitter, [B], that grows where the factorisation fails."""

    def not_done(attempt: tf.Tensor, _: tf.Tensor, tril: tf.Tensor) -> tf.Tensor:
        return (attempt < max_attempts) & ~tf.reduce_all(_succeeded(tril))

    def grow(
        attempt: tf.Tensor, total: tf.Tensor, tril: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        total = tf.where(_succeeded(tril), total, _JITTER_GROWTH * total)
        diagonal = tf.linalg.diag_part(matrix) + (total - jitter)[:, None]
        return attempt + 1, total, tf.linalg.cholesky(tf.linalg.set_diag(matrix, diagonal))

    start = (tf.constant(0), jitter, tf.linalg.cholesky(matrix))
    shapes = tuple(tf.TensorShape([None] * rank) for rank in (0, 1, 3))
    return tf.while_loop(not_done, grow, start, shape_invariants=shapes, name="escalation")[2]


def half_lower(matrix: tf.Tensor) -> tf.Tensor:
    """Take the lower triangle, with half its diagonal: low(X)."""
    size = matrix.shape[-1]
    if size is not None:
        return matrix * (np.tri(size) - 0.5 * np.eye(size)).astype(matrix.dtype.as_numpy_dtype)
    ones = tf.ones(tf.shape(matrix)[-2:], matrix.dtype)
    return matrix * (tf.linalg.band_part(ones, -1, 0) - 0.5 * tf.linalg.band_part(ones, 0, 0))


def unwhiten_both_sides(tril: tf.Tensor, inner: tf.Tensor) -> tf.Tensor:
    """L⁻ᵀ Xᵀ L⁻¹, which as the gradient of a symmetric matrix is as good as L⁻ᵀ X L⁻¹."""
    left = tf.linalg.triangular_solve(tril, inner, adjoint=True)
    return tf.linalg.triangular_solve(tril, tf.linalg.matrix_transpose(left), adjoint=True)


def whiten_both_sides(tril: tf.Tensor, inner: tf.Tensor) -> tf.Tensor:
    """L⁻¹ (X + Xᵀ) L⁻ᵀ / 2."""
    symmetric = 0.5 * (inner + tf.linalg.matrix_transpose(inner))
    left = tf.linalg.triangular_solve(tril, symmetric)
    return tf.linalg.triangular_solve(tril, tf.linalg.matrix_transpose(left))


def sum_to(gradient: tf.Tensor, primal: tf.Tensor) -> tf.Tensor:
    """Undo the broadcasting of leading axes."""
    if gradient.shape == primal.shape and primal.shape.is_fully_defined():
        return gradient
    target = tf.shape(primal)
    axes, _ = tf.raw_ops.BroadcastGradientArgs(s0=target, s1=tf.shape(gradient))
    return tf.reshape(tf.reduce_sum(gradient, axes), target)
