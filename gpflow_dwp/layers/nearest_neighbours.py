"""The Gaussian output layer that conditions on the nearest rows."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.functions import MeanFunction
from gpflow.kernels import Kernel

from gpflow_dwp.base import sizes
from gpflow_dwp.kernels.dtype import kernel_in_dtype
from gpflow_dwp.layers.base import Description, GaussianPosterior
from gpflow_dwp.layers.regression import RowsGPLayer
from gpflow_dwp.linalg import Factorised, conditional_moments, factorise
from gpflow_dwp.neighbours import INFINITE, Trees, nearest_in_graph
from gpflow_dwp.papers import bibtex
from gpflow_dwp.random import as_seed, normal_at_points
from gpflow_dwp.validation import check_integers

__all__ = ["NearestNeighbourGPLayer", "RowsPosterior"]

_VECCHIA = bibtex(
    "article",
    "vecchia1988estimation",
    title="Estimation and model identification for continuous spatial processes",
    author="Vecchia, A. V.",
    journal="Journal of the Royal Statistical Society: Series B",
    volume=50,
    year=1988,
)
_DATTA = bibtex(
    "article",
    "datta2016hierarchical",
    title="Hierarchical nearest-neighbor {G}aussian process models for large geostatistical "
    "datasets",
    author="Datta, Abhirup and Banerjee, Sudipto and Finley, Andrew O. and Gelfand, Alan E.",
    journal="Journal of the American Statistical Association",
    volume=111,
    year=2016,
)
# Where functions are drawn jointly, points may coincide: relative to the kernel's variance.
_JITTER = 1e-10


class RowsPosterior(NamedTuple):
    """What a :class:`NearestNeighbourGPLayer` conditions on, given draws of the layers below.

    :param features: Of the rows, [S, N, R]; inputs without layers below.
    :param targets: Observations on the scale of f, less the mean function, [N, Q].
    :param noise: Variance of each row's noise, [N].
    :param ranks: Where the rows are in the ordering, [N].
    :param log_ratio: 0, as the functions are integrated out, [1].
    :param trees: To search rows with, where they are no symbols.
    """

    features: tf.Tensor
    targets: tf.Tensor
    noise: tf.Tensor
    ranks: tf.Tensor
    log_ratio: tf.Tensor
    trees: Trees | None


@dataclasses.dataclass(frozen=True)
class _Local:
    """Neighbours of B points under S draws, and covariances.

    :param index: Of the neighbours, [S, B, m].
    :param covariance: Of their observations, [S B, m, m].
    :param cross: With the points, [S, B, m].
    :param variance: A priori, of the points, [S, B].
    """

    index: tf.Tensor
    covariance: Factorised
    cross: tf.Tensor
    variance: tf.Tensor

    def weights(self) -> tf.Tensor:
        """What the neighbours' observations count in each mean, [S, B, m]."""
        cross = tf.reshape(self.cross, [-1, sizes(self.cross)[2], 1])
        return tf.reshape(tf.linalg.cholesky_solve(self.covariance.tril, cross), sizes(self.cross))


class NearestNeighbourGPLayer(RowsGPLayer):
    r"""A Gaussian process given the Gram matrices, in which each row knows of its nearest alone.

    With rows in a random order and N(n) the m nearest of those that precede row n, it is Vecchia's
    approximation of the process ("Estimation and model identification for continuous spatial
    processes", 1988; Datta, Banerjee, Finley and Gelfand, "Hierarchical nearest-neighbor Gaussian
    process models for large geostatistical datasets", 2016, whose response model this is),

    .. math:: p(y \mid G) \approx \prod_n \mathcal N(y_n; k_n^T A_n^{-1} y_{N(n)},
              k_{nn} + \sigma^2 - k_n^T A_n^{-1} k_n), \qquad A_n = K_{N(n) N(n)} + \sigma^2 I ,

    exact for m = N - 1. Functions are integrated out, so the bound is
    :math:`\operatorname E \log p(y \mid G)` less the hidden layers' divergences. Rows of a batch
    estimate it without bias, as their neighbours are of all rows. New points condition on the m
    nearest of all rows.

    Rows and points are at the features that they are expected to have given the inducing points'
    Gram matrices: the layers below are functions that their inducing points determine. Neighbours
    are the nearest in these features of each draw, or without layers below in the inputs by the
    kernel's lengthscales. The order is a random number that belongs to a row's inputs and targets,
    so that it is the same in every batch; rows that are copies of each other do not precede each
    other.

    m = 50 suffices for functions without noise; the more noise, and the longer the lengthscales
    beside the distances of rows, the more it takes. With more than some 20 inputs that matter no
    rows are near.

    Parameters and errors but for one are those of :class:`RowsGPLayer`. Where ``noise_variance`` is
    the likelihood's, the above holds; it is learned by itself.

    :param num_neighbours: How many rows each row or point knows of, m.
    """

    papers: ClassVar[tuple[str, ...]] = (_VECCHIA, _DATTA)

    def __init__(
        self,
        kernel: Kernel,
        num_inducing: int,
        inputs: npt.NDArray[np.float64] | tf.Tensor,
        targets: npt.NDArray[np.float64] | tf.Tensor,
        *,
        num_neighbours: int = 50,
        noise_variance: float = np.exp(-4.0),
        weights: npt.NDArray[np.float64] | tf.Tensor | None = None,
        precisions: npt.NDArray[np.float64] | tf.Tensor | None = None,
        mean_function: MeanFunction | None = None,
    ) -> None:
        check_integers(num_neighbours=num_neighbours)
        super().__init__(
            kernel,
            num_inducing,
            inputs,
            targets,
            noise_variance,
            weights,
            precisions,
            mean_function,
        )
        self.num_neighbours = num_neighbours

    def describe(self) -> Description:
        return Description(
            f"functions, {self.num_outputs} each",
            f"Gaussian, {self.num_neighbours} nearest of {len(self.targets.numpy()):,} data",
        )

    def infer_inducing(self, *arguments: Any, **named: Any) -> GaussianPosterior:
        raise NotImplementedError("A NearestNeighbourGPLayer has no posterior at inducing points.")

    def infer_rows(self, features: tf.Tensor, targets: tf.Tensor) -> RowsPosterior:
        """Return what there is to condition on.

        :param features: Of the rows, given draws of the layers below, [S, N, R].
        :param targets: Observations on the scale of f, less the mean function, [N, Q].
        """
        dtype = features.dtype
        noise = tf.broadcast_to(tf.cast(self.noise_variance, dtype), sizes(targets)[:1])
        factors = self.factors(dtype)
        if factors is not None:
            noise /= factors
        trees = None
        if tf.executing_eagerly():
            trees = Trees(self._near(features).numpy())
        ranks = self.ranks(*self.rows)
        return RowsPosterior(features, targets, noise, ranks, tf.zeros([1], dtype), trees)

    def ranks(self, X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        """The random numbers by which rows are in order, [N]."""
        both = tf.concat([tf.cast(X, tf.float64), tf.cast(Y, tf.float64)], axis=1)
        return normal_at_points(both, as_seed(0), 1, 1)[0, :, 0]

    def condition_rows(
        self, draw: RowsPosterior, features: tf.Tensor, ranks: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Mean, [S, B, Q], and variance, [S, B], of functions at points given their neighbours.

        :param features: Of the points, [S, B, R].
        :param ranks: That of each point in the ordering, [B], where rows have to precede it; None
            for neighbours among all rows.
        """
        local = self._local(draw, features, ranks)
        num_draws, num_points, size = sizes(local.cross)
        batch = num_draws * num_points
        cross = tf.reshape(local.cross, [batch, size, 1])
        near = tf.reshape(tf.gather(draw.targets, local.index), [batch, size, -1])
        mean, explained = conditional_moments(local.covariance, cross, near)
        mean = tf.reshape(mean, [num_draws, num_points, sizes(draw.targets)[1]])
        left = local.variance - tf.reshape(explained, [num_draws, num_points])
        return mean, tf.maximum(left, tf.zeros([], left.dtype))

    def condition_jointly(
        self, draw: RowsPosterior, features: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        r"""Mean, [S, B, Q], and covariance, [S, B, B], of functions at points that follow all rows.

        Each has its neighbours among the rows and the points before it. With b their weights and d
        the variance that they leave, f = B f + c + √d ε, which is solved for f.

        :param features: Of the points, [S, B, R].
        """
        num_rows, num_points = sizes(draw.targets)[0], sizes(features)[1]
        order = tf.range(num_rows + num_points)
        later = tf.cast(tf.maximum(order - num_rows + 1, 0), draw.noise.dtype)
        jitter = _JITTER * self._kernel(features.dtype)(features[0], full_cov=False)
        everything = draw._replace(
            features=tf.concat([draw.features, features], axis=1),
            noise=tf.concat([draw.noise, jitter], axis=0),
            ranks=later,
            trees=None,
        )
        local = self._local(everything, features, later[num_rows:])
        weights, is_row = local.weights(), local.index < num_rows
        near = tf.gather(draw.targets, tf.minimum(local.index, num_rows - 1))
        known = tf.where(is_row, weights, tf.zeros_like(weights))
        constant = tf.einsum("sbm,sbmq->sbq", known, near)
        places = tf.one_hot(local.index - num_rows, num_points, dtype=weights.dtype)
        system = tf.eye(num_points, dtype=weights.dtype) - tf.einsum(
            "sbm,sbmc->sbc", weights, places
        )
        left = local.variance - tf.reduce_sum(weights * local.cross, axis=-1)
        deviation = tf.linalg.diag(tf.sqrt(tf.maximum(left, tf.zeros([], left.dtype))))
        mean = tf.linalg.triangular_solve(system, constant)
        root = tf.linalg.triangular_solve(system, deviation)
        return mean, tf.matmul(root, root, transpose_b=True)

    def weights_of_rows(
        self, draw: RowsPosterior, features: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Indices of each point's nearest rows, and what they count in its mean, [S, B, m]."""
        local = self._local(draw, features, None)
        return local.index, local.weights()

    def _local(self, draw: RowsPosterior, features: tf.Tensor, ranks: tf.Tensor | None) -> _Local:
        points = self._near(features)
        if ranks is None and draw.trees is not None:
            index = draw.trees.nearest(points, self.num_neighbours)
            noise = tf.gather(draw.noise, index)
        else:
            given = None if ranks is None else (draw.ranks, ranks)
            index, is_there = nearest_in_graph(
                self._near(draw.features), points, self.num_neighbours, given
            )
            noise = tf.gather(draw.noise, index)
            noise = tf.where(is_there, noise, tf.constant(INFINITE, noise.dtype))
        size = sizes(index)[2]
        near = tf.gather(draw.features, index, batch_dims=1)
        both = tf.concat([near, features[:, :, None]], axis=2)
        K = self._kernel(features.dtype)(both)
        covariance = K[..., :size, :size]
        covariance = tf.linalg.set_diag(covariance, tf.linalg.diag_part(covariance) + noise)
        factorised = factorise(
            tf.reshape(covariance, [-1, size, size]), None, name="neighbours' covariance"
        )
        return _Local(index, factorised, K[..., :size, size], K[..., size, size])

    def _kernel(self, dtype: tf.DType) -> Kernel:
        return kernel_in_dtype(self.kernel, dtype)

    def _near(self, features: tf.Tensor) -> tf.Tensor:
        """Where neighbours are searched: features by the kernel's lengthscales."""
        scales = getattr(self.kernel, "lengthscales", None)
        features = tf.stop_gradient(features)
        return features if scales is None else features / tf.cast(scales, features.dtype)
