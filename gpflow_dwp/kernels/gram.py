"""Covariances from Gram matrices, in the three shapes that layers need, and between points."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import gpflow
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.kernels import IsotropicStationary, Kernel, SquaredExponential, Sum

from gpflow_dwp.kernels._formulas import (
    Coinciding,
    Entries,
    gram_kernel,
    of_squared_distances,
    product_and_sum,
)
from gpflow_dwp.kernels.check import check_gram_kernel

__all__ = [
    "cross_covariance",
    "cross_of_draws",
    "gram_K",
    "gram_K_cross",
    "gram_K_diag",
    "kernel_in_dtype",
]

# What a user's kernel may have in another way.
_FORMULA = ("__call__", "K", "scaled_squared_euclid_dist")


@check_shapes("gram: [batch..., M, M]", "return: [batch..., M, M]")
def gram_K(kernel: Kernel, gram: TensorType, *, features: tf.Tensor | None = None) -> tf.Tensor:
    """Covariance of points with themselves: ``kernel.K(F)`` where ``gram`` is F Fᵀ.

    :param kernel: A kernel that is a function of inner products.
    :param gram: Inner products of the points, symmetric, [..., M, M].
    :param features: Any F, [..., M, R], that ``gram`` was made of; saves time.
    :return: Covariance [..., M, M].
    :raises UnsupportedKernelError: If the kernel cannot act on a Gram matrix.
    """
    check_gram_kernel(kernel)
    gram = tf.convert_to_tensor(gram)
    if features is None:
        pair, norms = None, tf.linalg.diag_part(gram)
    else:
        pair, norms = (features, features), tf.reduce_sum(tf.square(features), axis=-1)
    rows, columns = tf.expand_dims(norms, -1), tf.expand_dims(norms, -2)
    entries = Entries(gram, rows, columns, Coinciding.DIAGONAL, pair)
    return _spread(gram_kernel(kernel, entries), gram)


@check_shapes(
    "cross: [broadcast batch..., M, N]",
    "row_diag: [broadcast batch..., M]",
    "column_diag: [broadcast batch..., N]",
    "return: [batch..., M, N]",
)
def gram_K_cross(
    kernel: Kernel,
    cross: TensorType,
    row_diag: TensorType,
    column_diag: TensorType,
    *,
    features: tuple[tf.Tensor, tf.Tensor] | None = None,
) -> tf.Tensor:
    """Covariance of two different sets of points, such as inducing and target points.

    Leading axes broadcast. A row and a column that happen to be the same point are still two
    points: White noise is not shared between them.

    :param kernel: A kernel that is a function of inner products.
    :param cross: Inner products of row points and column points, [..., M, N].
    :param row_diag: Squared norms of the row points, [..., M].
    :param column_diag: Squared norms of the column points, [..., N].
    :param features: Features of row and column points, [..., M, R] and [..., N, R], whose inner
        products ``cross`` holds; saves time. Norms may exceed theirs.
    :return: Covariance [..., M, N].
    :raises UnsupportedKernelError: If the kernel cannot act on a Gram matrix.
    """
    check_gram_kernel(kernel)
    cross = tf.convert_to_tensor(cross)
    rows = tf.expand_dims(row_diag, -1)
    columns = tf.expand_dims(column_diag, -2)
    entries = Entries(cross, rows, columns, Coinciding.NONE, features)
    return _spread(gram_kernel(kernel, entries), cross, rows, columns)


@check_shapes("diag: [batch..., N]", "return: [batch..., N]")
def gram_K_diag(kernel: Kernel, diag: TensorType) -> tf.Tensor:
    """Variances of points: ``kernel.K_diag(F)`` where ``diag`` is the diagonal of F Fᵀ.

    :param kernel: A kernel that is a function of inner products.
    :param diag: Squared norms of the points, [..., N].
    :return: Variances [..., N].
    :raises UnsupportedKernelError: If the kernel cannot act on a Gram matrix.
    """
    check_gram_kernel(kernel)
    diag = tf.convert_to_tensor(diag)
    return _spread(gram_kernel(kernel, Entries(diag, diag, diag, Coinciding.ALL)), diag)


def _spread(values: tf.Tensor, *entries: tf.Tensor) -> tf.Tensor:
    """Broadcast values to the entries' common shape; free where they have it already."""
    static = functools.reduce(tf.broadcast_static_shape, [each.shape for each in entries])
    if values.shape.rank == static.rank and 1 not in values.shape.as_list():
        return values  # of all entries, as every other formula leaves an axis out, or of size 1
    shapes = [tf.shape(each) for each in entries]
    return tf.broadcast_to(values, functools.reduce(tf.broadcast_dynamic_shape, shapes))


@check_shapes("points: [M, D]", "targets: [N, D]", "return: [M, N]")
def cross_covariance(kernel: Kernel, points: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Return ``kernel(points, targets)``.

    Where the number of targets is not known at tracing, GPflow's distances and their gradients put
    shapes together on a GPU, and the host waits for each. Here they do not.

    :param kernel: Any GPflow kernel.
    :param points: One set of points, [M, D].
    :param targets: Another one, [N, D].
    """
    if type(kernel) is Sum:
        return tf.add_n([cross_covariance(part, points, targets) for part in kernel.kernels])
    if not isinstance(kernel, IsotropicStationary) or any(
        getattr(type(kernel), name) is not getattr(IsotropicStationary, name) for name in _FORMULA
    ):
        return kernel(points, targets)
    rows, columns = map(kernel.scale, kernel.slice(points, targets))
    row, column = (
        -0.5 * tf.reduce_sum(tf.square(part), axis=-1, keepdims=True) for part in (rows, columns)
    )
    scale = tf.ones([], rows.dtype)
    if type(kernel).K_r2 is SquaredExponential.K_r2:
        row += tf.math.log(kernel.variance)
        return tf.exp(product_and_sum(rows, row, columns, tf.transpose(column), scale))
    r2 = product_and_sum(rows, row, columns, tf.transpose(column), -2.0 * scale)
    return of_squared_distances(kernel, r2)


@check_shapes("points: [broadcast S, M, R]", "X: [broadcast S, N, R]", "return: [S, M, N]")
def cross_of_draws(kernel: Kernel, points: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
    """Covariance of some points and others, each under the same draw of their features.

    :param kernel: Of inputs, where all draws share the points; else a function of inner products.
    :param points: [S, M, R], or [1, M, R] for all draws.
    :param X: [S, N, R].
    """
    if points.shape[0] == 1:
        shape = tf.shape(X)
        flat = kernel(points[0], tf.reshape(X, [-1, X.shape[-1]]))
        return tf.transpose(tf.reshape(flat, [-1, shape[0], shape[1]]), [1, 0, 2])
    return gram_K_cross(
        kernel,
        tf.matmul(points, X, transpose_b=True),
        tf.reduce_sum(tf.square(points), axis=-1),
        tf.reduce_sum(tf.square(X), axis=-1),
        features=(points, X),
    )


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
