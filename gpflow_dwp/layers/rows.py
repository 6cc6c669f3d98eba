"""Predictions from the nearest of the rows that an output layer keeps."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.kernels import Kernel

from gpflow_dwp.base import sizes
from gpflow_dwp.kernels.gram import cross_of_draws, kernel_in_dtype
from gpflow_dwp.kernels.values import inverse_scales, parts_of
from gpflow_dwp.layers.base import OutputLayer
from gpflow_dwp.layers.rows_posterior import InducingRows, RowsOfKernels, RowsPosterior
from gpflow_dwp.linalg import Factorised, conditional_moments, factorise, relative_jitter
from gpflow_dwp.neighbours import INFINITE, Index, Trees, nearest_in_graph
from gpflow_dwp.random import as_seed, normal_at_points

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["NearestRows"]

# Where functions are drawn jointly, points may coincide: relative to the kernel's variance.
_JITTER = 1e-10
# Rows whose covariances with the inducing points are in memory at once.
_BLOCK = 16_384

_Moments = tuple[tf.Tensor, tf.Tensor]


class _Local(NamedTuple):
    """Neighbours of B points under S draws, and covariances, of what inducing points leave.

    :param index: Of the neighbours, [S, B, m].
    :param covariance: Of their observations, [S B, m, m].
    :param cross: With the points, [S, B, m].
    :param variance: A priori, of the points, [S, B].
    :param near: What v counts at neighbours and, last, the point, [S, B, m + 1, M]; None without v.
    """

    index: tf.Tensor
    covariance: Factorised
    cross: tf.Tensor
    variance: tf.Tensor
    near: tf.Tensor | None

    def moments(self, targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """What neighbours alone tell of a point: mean, [S, B, Q], and variance, [S, B]."""
        num_draws, num_points, size = sizes(self.cross)
        batch = num_draws * num_points
        cross = tf.reshape(self.cross, [batch, size, 1])
        near = tf.reshape(_taken(targets, self.index), [batch, size, -1])
        mean, explained = conditional_moments(self.covariance, cross, near)
        left = self.variance - tf.reshape(explained, [num_draws, num_points])
        mean = tf.reshape(mean, [num_draws, num_points, sizes(targets)[-1]])
        return mean, tf.maximum(left, tf.zeros([], left.dtype))

    def weights(self) -> tf.Tensor:
        """What the neighbours' observations count in each mean, [S, B, m]."""
        cross = tf.reshape(self.cross, [-1, sizes(self.cross)[2], 1])
        return tf.reshape(tf.linalg.cholesky_solve(self.covariance.tril, cross), sizes(self.cross))

    def loadings(self) -> tf.Tensor | None:
        """What v counts at each point beside the neighbours' observations, [S, B, M]."""
        if self.near is None:
            return None
        known = tf.einsum("sbm,sbmk->sbk", self.weights(), self.near[:, :, :-1])
        return self.near[:, :, -1] - known


def _of_each_kernel(method: Callable[..., _Moments]) -> Callable[..., _Moments]:
    """Moments of the functions of all kernels; variances behind an axis of several."""

    @functools.wraps(method)
    def of_all(self: NearestRows, draw: RowsOfKernels, *arguments: Any) -> _Moments:
        pairs = zip(self.of_kernels, draw.parts, strict=True)
        found = [method(layer, part, *arguments) for layer, part in pairs]
        if len(found) == 1:
            return found[0]
        means, variances = zip(*found, strict=True)
        return tf.concat(means, axis=-1), tf.stack(variances, axis=1)

    return of_all


class NearestRows(OutputLayer):
    """What an output layer that keeps rows predicts from the nearest of them.

    :ivar num_neighbours: How many of its nearest rows each point's prediction conditions on, m.
    """

    inputs: Parameter
    targets: Parameter
    noise_variance: Parameter
    missing: Parameter | None
    precisions: Parameter | None
    num_neighbours: int
    jitter: float

    @property
    def rows(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The data: ``inputs`` and ``targets``, NaN where they are missing."""
        return tf.convert_to_tensor(self.inputs), self.observed

    @property
    def observed(self) -> tf.Tensor:
        """The targets, [N, Q], NaN where they are missing."""
        targets = tf.convert_to_tensor(self.targets)
        if self.missing is None:
            return targets
        return tf.where(self.missing > 0.0, tf.constant(np.nan, targets.dtype), targets)

    def factors(self, dtype: tf.DType) -> tf.Tensor | None:
        """What the precision of each row is multiplied by, [N]; None for 1."""
        given = [tf.cast(e, dtype) for e in (self.weights, self.precisions) if e is not None]
        return tf.reduce_prod(given, axis=0) if given else None

    @property
    def of_kernels(self) -> Sequence[Self]:
        """The layer of each kernel, where functions have kernels of their own; else itself."""
        if self.missing is None:
            return [self]
        layers, of_rows = [], 1.0 if self.weights is None else self.weights
        for index, kernel in enumerate(self.kernels):
            layers.append(layer := copy.copy(self))
            layer.kernel, layer.noise_variance = kernel, self.noise_variance[index]
            layer.weights, layer.missing = of_rows * (1.0 - self.missing[:, index]), None
        return layers

    def infer_rows(
        self, features: tf.Tensor, targets: tf.Tensor, points: tf.Tensor | None = None
    ) -> RowsOfKernels:
        r"""Return what there is to condition on.

        Given inducing points, rows tell of the functions there as if what these leave were of
        independent rows (FITC: Snelson and Ghahramani, "Sparse Gaussian processes using
        pseudo-inputs", 2006),

        .. math:: q(u) \propto \mathcal N(u; 0, K) \prod_n \mathcal N(y_n; c_n^T K^{-1} u,
                  \sigma^2 + k_{nn} - c_n^T K^{-1} c_n),

        and predictions add what the nearest rows tell of the rest, whose covariance is
        :math:`k - c^T K^{-1} c'` (the full-scale approximation of Sang and Huang, "A full scale
        approximation of covariance functions for large spatial data sets", 2012).

        :param features: Of the rows, given draws of the layers below, [S, N, R].
        :param targets: Observations on the scale of f, less the mean function, [N, Q].
        :param points: Features of the inducing points, [S, M, R]; None without any.
        """
        layers = self.of_kernels
        columns = tf.split(targets, len(layers), axis=-1)
        return RowsOfKernels(
            [
                layer._infer_rows(features, column, points)
                for layer, column in zip(layers, columns, strict=True)
            ]
        )

    def _infer_rows(
        self, features: tf.Tensor, targets: tf.Tensor, points: tf.Tensor | None
    ) -> RowsPosterior:
        """That of functions that share a kernel."""
        dtype = features.dtype
        noise = tf.broadcast_to(tf.cast(self.noise_variance, dtype), sizes(features)[1:2])
        factors = self.factors(dtype)
        if factors is not None:
            noise = tf.minimum(noise / factors, tf.constant(INFINITE, dtype))
        trees, counts = None, noise < INFINITE
        if tf.executing_eagerly():
            trees = Trees(self._near(features).numpy(), counts.numpy())
        ranks = tf.where(counts, self.ranks(*self.rows), np.inf)
        rows = RowsPosterior(features, targets, noise, ranks, tf.zeros([1], dtype), trees)
        return (
            rows if points is None else rows._replace(inducing=self._infer_inducing(rows, points))
        )

    def _infer_inducing(self, rows: RowsPosterior, points: tf.Tensor) -> InducingRows:
        kernel = self._kernel(points.dtype)
        K = kernel(points)
        tril = factorise(K, relative_jitter(K, self.jitter), name="the output layer's K_ii").tril
        num_draws, num_points, num_outputs = *sizes(points)[:2], sizes(rows.targets)[-1]
        H = tf.eye(num_points, batch_shape=[num_draws], dtype=points.dtype)
        mean = tf.zeros([num_draws, num_points, num_outputs], points.dtype)
        num_rows, found = rows.noise.shape[0], []
        for start in range(0, num_rows or 1, _BLOCK):
            block = slice(start, None if num_rows is None else start + _BLOCK)
            features, targets = rows.features[:, block], rows.targets[..., block, :]
            loadings = self._loadings(points, tril, features)
            left = kernel(features, full_cov=False) - tf.reduce_sum(loadings**2, axis=-1)
            variance = tf.maximum(left, tf.zeros([], left.dtype)) + rows.noise[block]
            scaled = loadings / variance[..., None]
            H += tf.matmul(scaled, loadings, transpose_a=True)
            mean += tf.matmul(scaled, targets, transpose_a=True)
            found.append((loadings, variance))
        loadings, variance = (tf.concat(each, axis=1) for each in zip(*found, strict=True))
        precision = factorise(H, None, name="the precision at the inducing points")
        mean = tf.linalg.cholesky_solve(precision.tril, mean)
        return InducingRows(points, tril, loadings, variance, mean, precision)

    def ranks(self, X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        """The random numbers by which rows are in order, [N]."""
        Y = tf.where(tf.math.is_nan(Y), tf.zeros_like(Y), Y)
        both = tf.concat([tf.cast(X, tf.float64), tf.cast(Y, tf.float64)], axis=1)
        return normal_at_points(both, as_seed(0), 1, 1)[0, :, 0]

    @_of_each_kernel
    def condition_rows(
        self, draw: RowsPosterior, features: tf.Tensor, ranks: tf.Tensor | None = None
    ) -> _Moments:
        """Mean, [S, B, Q], and variance of functions at points given their neighbours.

        It is [S, B], or of functions that have kernels of their own [S, Q, B].

        :param features: Of the points, [S, B, R].
        :param ranks: That of each point in the ordering, [B], where rows have to precede it; None
            for neighbours among all rows.
        """
        local = self._local(draw, features, self._nearest(draw, features, ranks))
        mean, variance = local.moments(draw.targets)
        loadings = local.loadings()
        if draw.inducing is None or loadings is None:
            return mean, variance
        mean += tf.matmul(loadings, draw.inducing.mean)
        of_points = _whitened(draw.inducing.precision.tril, loadings)
        return mean, variance + tf.reduce_sum(of_points**2, axis=-1)

    @_of_each_kernel
    def leave_out(self, draw: RowsPosterior, rows: Index) -> _Moments:
        """Mean and variance of functions at rows given all others, as :meth:`condition_rows`.

        Each is predicted from its nearest others, and from functions at the inducing points that
        are without what it tells of them.

        :param draw: Not of a compiled function's graph.
        :param rows: Their indices, [B].
        """
        features = tf.gather(draw.features, rows, axis=1)
        counts = draw.noise.numpy() < INFINITE
        trees = draw.trees or Trees(self._near(draw.features).numpy(), counts)
        others = tf.constant(trees.nearest_others(rows, self.num_neighbours))
        loadings = None if draw.inducing is None else tf.gather(draw.inducing.rows, rows, axis=1)
        local = self._local(draw, features, (others, None), loadings)
        mean, variance = local.moments(draw.targets)
        beside = local.loadings()
        if draw.inducing is None or beside is None:
            return mean, variance
        tril = draw.inducing.precision.tril
        whitened = [_whitened(tril, each) for each in (loadings, beside)]
        own, both = (tf.reduce_sum(whitened[0] * each, axis=-1) for each in whitened)
        left = tf.gather(draw.inducing.variance, rows, axis=1) - own
        residual = _taken(draw.targets, rows[None]) - tf.matmul(loadings, draw.inducing.mean)
        mean += tf.matmul(beside, draw.inducing.mean) - (both / left)[..., None] * residual
        return mean, variance + tf.reduce_sum(whitened[1] ** 2, axis=-1) + both**2 / left

    @_of_each_kernel
    def condition_jointly(self, draw: RowsPosterior, features: tf.Tensor) -> _Moments:
        r"""Mean, [S, B, Q], and covariance of functions at points that follow all rows.

        It is [S, B, B], or of functions that have kernels of their own [S, Q, B, B].

        Each has its neighbours among the rows and the points before it. With b their weights, d
        the variance that they leave and g what v counts, f = B f + c + g v + √d ε, which is solved
        for f.

        :param features: Of the points, [S, B, R].
        """
        num_rows, num_points = sizes(draw.targets)[-2], sizes(features)[1]
        later = tf.cast(tf.range(1, num_points + 1), draw.ranks.dtype)
        before = tf.where(tf.math.is_inf(draw.ranks), draw.ranks, tf.zeros_like(draw.ranks))
        jitter = _JITTER * self._kernel(features.dtype)(features[0], full_cov=False)
        everything = draw._replace(
            features=tf.concat([draw.features, features], axis=1),
            noise=tf.concat([draw.noise, jitter], axis=0),
            ranks=tf.concat([before, later], axis=0),
            trees=None,
        )
        if draw.inducing is not None:
            of_points = self._loadings(draw.inducing.points, draw.inducing.tril, features)
            known = tf.concat([draw.inducing.rows, of_points], axis=1)
            everything = everything._replace(inducing=draw.inducing._replace(rows=known))
        near = self._nearest(everything, features, later)
        local = self._local(everything, features, near)
        weights, is_row = local.weights(), local.index < num_rows
        targets = _taken(draw.targets, tf.minimum(local.index, num_rows - 1))
        known = tf.where(is_row, weights, tf.zeros_like(weights))
        constant = tf.einsum("sbm,sbmq->sbq", known, targets)
        places = tf.one_hot(local.index - num_rows, num_points, dtype=weights.dtype)
        system = tf.eye(num_points, dtype=weights.dtype) - tf.einsum(
            "sbm,sbmc->sbc", weights, places
        )
        left = local.variance - tf.reduce_sum(weights * local.cross, axis=-1)
        noise = tf.linalg.diag(tf.sqrt(tf.maximum(left, tf.zeros([], left.dtype))))
        loadings = local.loadings()
        if draw.inducing is not None and loadings is not None:
            constant += tf.matmul(loadings, draw.inducing.mean)
            root = _whitened(draw.inducing.precision.tril, loadings)
            noise = tf.concat([noise, root], axis=-1)
        mean = tf.linalg.triangular_solve(system, constant)
        root = tf.linalg.triangular_solve(system, noise)
        return mean, tf.matmul(root, root, transpose_b=True)

    def _nearest(
        self, draw: RowsPosterior, features: tf.Tensor, ranks: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Indices of each point's neighbours, [S, B, m], and whether there are such."""
        points = self._near(features)
        if ranks is None and draw.trees is not None:
            return draw.trees.nearest(points, self.num_neighbours), None
        if ranks is None:
            ranks = tf.fill(tf.shape(points)[1:2], draw.ranks.dtype.max)
        size = self.num_neighbours
        return nearest_in_graph(self._near(draw.features), points, size, (draw.ranks, ranks))

    def _local(
        self,
        draw: RowsPosterior,
        features: tf.Tensor,
        neighbours: tuple[tf.Tensor, tf.Tensor | None],
        loadings: tf.Tensor | None = None,
    ) -> _Local:
        index, is_there = neighbours
        noise = tf.gather(draw.noise, index)
        if is_there is not None:
            noise = tf.where(is_there, noise, tf.constant(INFINITE, noise.dtype))
        size, inducing, near = sizes(index)[2], draw.inducing, None
        both = tf.concat([_taken(draw.features, index), features[:, :, None]], axis=2)
        K = self._kernel(features.dtype)(both)
        if inducing is not None:
            if loadings is None:
                loadings = self._loadings(inducing.points, inducing.tril, features)
            near = tf.concat([_taken(inducing.rows, index), loadings[:, :, None]], axis=2)
            K -= tf.matmul(near, near, transpose_b=True)
        covariance = K[..., :size, :size]
        covariance = tf.linalg.set_diag(covariance, tf.linalg.diag_part(covariance) + noise)
        factorised = factorise(
            tf.reshape(covariance, [-1, size, size]), None, name="neighbours' covariance"
        )
        return _Local(index, factorised, K[..., :size, size], K[..., size, size], near)

    def _loadings(self, points: tf.Tensor, tril: tf.Tensor, features: tf.Tensor) -> tf.Tensor:
        """What v counts at points, [S, B, M]."""
        cross = cross_of_draws(self._kernel(points.dtype), points, features)
        return tf.linalg.matrix_transpose(tf.linalg.triangular_solve(tril, cross))

    def _kernel(self, dtype: tf.DType) -> Kernel:
        return kernel_in_dtype(self.kernel, dtype)

    def _near(self, features: tf.Tensor) -> tf.Tensor:
        """Where neighbours are searched: features by how fast the kernel falls along each."""
        parts, features = parts_of(self.kernel), tf.stop_gradient(features)
        if not any(hasattr(part, "lengthscales") for part in parts):
            return features
        scales = inverse_scales(parts, features.shape[-1])
        return features * tf.stop_gradient(tf.cast(scales, features.dtype))


def _taken(values: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
    """Some rows' values, [S, B, m, ...], of [N, ...] or [S, N, ...]."""
    if values.shape.rank == 2:
        return tf.gather(values, index)
    return tf.gather(values, index, batch_dims=1)


def _whitened(tril: tf.Tensor, loadings: tf.Tensor) -> tf.Tensor:
    """L⁻¹ g of each point, [S, B, M]."""
    transposed = tf.linalg.matrix_transpose(loadings)
    return tf.linalg.matrix_transpose(tf.linalg.triangular_solve(tril, transposed))
