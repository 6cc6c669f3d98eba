"""The Gaussian output layer that conditions on the nearest rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
from gpflow.functions import MeanFunction
from gpflow.kernels import Kernel

from gpflow_dwp.base import Array
from gpflow_dwp.layers.base import Description, GaussianPosterior
from gpflow_dwp.layers.regression import RowsGPLayer
from gpflow_dwp.papers import bibtex
from gpflow_dwp.validation import check_integers

__all__ = ["NearestNeighbourGPLayer"]

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
        inputs: Array | tf.Tensor,
        targets: Array | tf.Tensor,
        *,
        num_neighbours: int = 50,
        noise_variance: float = np.exp(-4.0),
        weights: Array | tf.Tensor | None = None,
        precisions: Array | tf.Tensor | None = None,
        mean_function: MeanFunction | None = None,
    ) -> None:
        check_integers(num_neighbours=num_neighbours)
        given = noise_variance, weights, precisions, mean_function
        super().__init__(kernel, num_inducing, inputs, targets, *given, num_neighbours, None)

    def describe(self) -> Description:
        return Description(
            f"functions, {self.num_outputs} each",
            f"Gaussian, {self.num_neighbours} nearest of {len(self.targets.numpy()):,} data",
        )

    def infer_inducing(self, *arguments: Any, **named: Any) -> GaussianPosterior:
        raise NotImplementedError("A NearestNeighbourGPLayer has no posterior at inducing points.")
