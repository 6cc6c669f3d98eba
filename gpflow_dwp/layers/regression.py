"""Gaussian output layers whose posterior is made of data, and the one that is a regression."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow import Parameter
from gpflow.functions import MeanFunction
from gpflow.kernels import Kernel, SeparateIndependent
from gpflow.utilities import positive

from gpflow_dwp.base import Array
from gpflow_dwp.kernels.draws import draws_of, num_values
from gpflow_dwp.layers.base import Description, GaussianPosterior
from gpflow_dwp.layers.rows import NearestRows
from gpflow_dwp.linalg import as_jitter, cholesky, factorise, regression_posterior, relative_jitter
from gpflow_dwp.papers import GLOBAL_INDUCING_POINTS, bibtex
from gpflow_dwp.validation import (
    check_integers,
    check_matrix,
    check_memory,
    check_positive,
    check_weights,
)

__all__ = ["RegressionGPLayer", "RowsGPLayer"]

_TITSIAS = bibtex(
    "inproceedings",
    "titsias2009variational",
    title="Variational learning of inducing variables in sparse {G}aussian processes",
    author="Titsias, Michalis",
    booktitle="Artificial Intelligence and Statistics",
    year=2009,
)
_SNELSON = bibtex(
    "inproceedings",
    "snelson2006sparse",
    title="Sparse {G}aussian processes using pseudo-inputs",
    author="Snelson, Edward and Ghahramani, Zoubin",
    booktitle="Advances in Neural Information Processing Systems",
    volume=18,
    year=2006,
)
_SANG = bibtex(
    "article",
    "sang2012full",
    title="A full scale approximation of covariance functions for large spatial data sets",
    author="Sang, Huiyan and Huang, Jianhua Z.",
    journal="Journal of the Royal Statistical Society: Series B",
    volume=74,
    year=2012,
)
# Rounding of variances that Φ explains grows as the inverse of the jitter, that by its root as the
# root of this: below so much jitter the latter is worth its time.
_LEAST_FOR_INVERSE = 1e-9
_NOISE_VARIANCE = float(np.exp(-4.0))


class RowsGPLayer(NearestRows):
    """An output layer whose posterior is made of data, which it keeps.

    :param kernel: GPflow kernel that is applied to what the layer below hands on.
    :param num_inducing: Number of inducing points, M.
    :param inputs: The data's inputs, [N, D]. Kept as a parameter that is not trained.
    :param targets: Their observations, [N, Q]. Kept as a parameter that is not trained.
    :param noise_variance: Starting value of σ², which is learned: it need not be the likelihood's.
        A number, or where functions have kernels of their own one for each, [Q].
    :param weights: How often each row counts, [N]; None for once. A row of weight r is one of
        precision r/σ².
    :param precisions: Where what each row's precision is multiplied by starts, [N], which is
        learned: for a likelihood under which rows differ in it (:class:`WarpedStudentT`). None for
        1, which is not.
    :param mean_function: See :class:`OutputLayer`.
    :param num_neighbours: How many of its nearest rows each point's prediction conditions on, m.
    :param jitter: Added to the diagonal of K, relative to its mean; None for GPflow's
        ``default_jitter()`` when the layer is made.
    :raises ValueError: If an argument is not as said here, or too large for the machine's memory.
    """

    kept_as: ClassVar[dict[str, str]] = {"targets": "observed"}

    def __init__(
        self,
        kernel: Kernel,
        num_inducing: int,
        inputs: Array | tf.Tensor,
        targets: Array | tf.Tensor,
        noise_variance: float | Array,
        weights: Array | tf.Tensor | None,
        precisions: Array | tf.Tensor | None,
        mean_function: MeanFunction | None,
        num_neighbours: int,
        jitter: float | None,
    ) -> None:
        check_integers(num_inducing=num_inducing)
        has_several = isinstance(kernel, self.takes_kernels)
        X, Y = _check_rows("inputs", inputs, "targets", targets, may_miss=has_several)
        if has_several and np.ndim(noise_variance) == 0:
            noise_variance = np.full(Y.shape[1], noise_variance)
        check_positive(size=Y.shape[1] if has_several else None, noise_variance=noise_variance)
        if precisions is not None:
            check_positive(size=len(X), precisions=precisions)
        super().__init__(kernel, num_inducing, mean_function)
        # GPflow's parameters cannot be NaN.
        self.inputs, self.targets = _any_length(X), _any_length(np.nan_to_num(Y))
        self.missing = _any_length(np.isnan(Y).astype(X.dtype)) if has_several else None
        self.num_outputs = Y.shape[1]
        self.weights = None if weights is None else _any_length(check_weights(weights, len(X)))
        self.precisions = None if precisions is None else _positive(precisions)
        self._check_number_of_kernels(self.num_outputs)
        self.noise_variance = _positive(noise_variance)
        self.num_neighbours, self.jitter = num_neighbours, as_jitter(jitter)

    def set_rows(self, X: tf.Tensor, Y: tf.Tensor, weights: tf.Tensor | None = None) -> None:
        """Make the posterior a regression on other data, as many as they are.

        Precisions of rows begin anew, at 1, and are learned if they were.

        :param X: Inputs, [N, D].
        :param Y: Observations, [N, Q].
        :param weights: How often each row counts, [N]; None for once.
        :raises ValueError: If they are not two finite matrices of one length, with D and Q columns,
            or weights are not N numbers from 0.
        """
        may_miss = isinstance(self.kernel, self.takes_kernels)
        inputs, targets = _check_rows("X", X, "Y", Y, may_miss=may_miss)
        for name, part, old in (("X", inputs, self.inputs), ("Y", targets, self.targets)):
            if part.shape[1] != old.shape[1]:
                raise ValueError(f"{name} must have {old.shape[1]} columns, got {part.shape[1]}.")
        if weights is not None:
            weights = check_weights(weights, len(inputs))
        self.inputs.assign(inputs)
        self.targets.assign(np.nan_to_num(targets))
        if self.missing is not None:
            self.missing.assign(np.isnan(targets).astype(inputs.dtype))
        if self.precisions is not None:
            was_trained = self.precisions.trainable
            self.precisions = _positive(np.ones(len(inputs)))
            gpflow.set_trainable(self.precisions, was_trained)
        if self.weights is None:
            self.weights = None if weights is None else _any_length(weights)
        else:
            self.weights.assign(np.ones(len(inputs)) if weights is None else weights)


class RegressionGPLayer(RowsGPLayer):
    r"""A Gaussian process layer whose posterior is sparse GP regression, given the Gram matrices.

    For each output column y, given the covariance K of the inducing points and the cross-covariance
    C between them and the data,

    .. math:: q(u \mid K, C) \propto \mathcal N(u; 0, K)\, \mathcal N(y; C^T K^{-1} u, \sigma^2 I),

    the optimal posterior of a sparse GP with a Gaussian likelihood (Titsias, "Variational learning
    of inducing variables in sparse Gaussian processes", 2009, equation 10). C is taken at the
    features that the data are expected to have given the inducing points' Gram matrices below, so
    that q depends on these alone, as the posterior of a :class:`GlobalInducingGPLayer` does, and
    the bound of a deep model remains one (above an inverse Wishart layer: at those that zeros for
    its random numbers give, which is as admissible). Without hidden layers, and with the
    likelihood's variance as σ², it is that of GPflow's SGPR. There are no pseudo-targets to learn,
    so training takes far fewer steps; each of them carries all data through the layers once more.

    :func:`gpflow_dwp.linalg.regression_posterior` computes it, and its divergence from the prior.

    Functions have kernels of their own by GPflow's ``SeparateIndependent``. Each has a σ² of its
    own, then, and targets may be missing: a NaN counts as a row of no weight.

    With ``num_neighbours`` predictions condition on each point's nearest rows as well
    (:meth:`infer_rows`), so that they see what inducing points are too few for. The bound, and what
    is trained, are as without.

    With ``kernel_draws`` predictions average over draws of the kernels' values from their
    posterior: they are mixtures of the regressions under each. The bound, and what is trained, are
    of the kernels themselves, with which the draws move. :meth:`set_kernel_draws` takes them away.

    Parameters and errors are those of :class:`RowsGPLayer`, and:

    :param kernel_draws: Of each draw the logarithms of the lengthscales and of the variance, of one
        part of a sum, and one function's kernel, after the other, less those of ``kernel``, [S, K]:
        see
        :func:`~gpflow_dwp.kernels.draws.draws_of`. For a layer that is the lowest.
    """

    takes_kernels: ClassVar[tuple[type, ...]] = (SeparateIndependent,)

    def __init__(
        self,
        kernel: Kernel,
        num_inducing: int,
        inputs: Array | tf.Tensor,
        targets: Array | tf.Tensor,
        *,
        noise_variance: float | Array = _NOISE_VARIANCE,
        weights: Array | tf.Tensor | None = None,
        precisions: Array | tf.Tensor | None = None,
        jitter: float | None = None,
        mean_function: MeanFunction | None = None,
        num_neighbours: int = 0,
        kernel_draws: Array | tf.Tensor | None = None,
    ) -> None:
        check_integers(at_least=0, num_neighbours=num_neighbours)
        given = noise_variance, weights, precisions, mean_function
        super().__init__(kernel, num_inducing, inputs, targets, *given, num_neighbours, jitter)
        self.set_kernel_draws(kernel_draws)
        largest = max(num_inducing, len(self.inputs.numpy()))
        check_memory(num_inducing, largest, num_inducing=num_inducing)

    def set_kernel_draws(self, draws: Array | tf.Tensor | None) -> None:
        """Average predictions over draws of the kernel's values, or over none.

        :param draws: As ``kernel_draws``.
        :raises ValueError: If they are no finite matrix of as many columns, or there can be none.
        """
        self.kernel_draws: Parameter | None = None
        if draws is None:
            return
        draws, size = check_matrix("kernel_draws", draws), num_values(self.kernel)
        if self.num_neighbours or draws.shape[1] != size:
            raise ValueError(
                "kernel_draws must be None with neighbours, and of kernels that have none; else of "
                f"{size} columns, got {draws.shape[1]}."
            )
        self.kernel_draws = Parameter(draws, trainable=False)

    def for_predictions(self) -> RegressionGPLayer:
        if self.kernel_draws is None or self.num_neighbours:
            return self
        drawn = copy.copy(self)
        drawn.kernel = draws_of(self.kernel, self.kernel_draws)
        return drawn

    @property
    def papers(self) -> tuple[str, ...]:
        """BibTeX entries of what the layer rests on."""
        nearest = (_SNELSON, _SANG) if self.num_neighbours else ()
        return GLOBAL_INDUCING_POINTS, _TITSIAS, *nearest

    def describe(self) -> Description:
        nearest = f" and the {self.num_neighbours} nearest" if self.num_neighbours else ""
        return Description(
            f"functions [{self.num_inducing}, {self.num_outputs}]",
            f"Gaussian, regression on {len(self.targets.numpy()):,} data{nearest}",
        )

    @inherit_check_shapes
    def infer_inducing(
        self,
        covariance: tf.Tensor,
        cross: tf.Tensor | None = None,
        targets: tf.Tensor | None = None,
    ) -> GaussianPosterior:
        if cross is None:
            raise ValueError("cross must be given: the posterior depends on the layer's inputs.")
        targets = tf.cast(self.targets if targets is None else targets, covariance.dtype)
        if covariance.shape.rank == 3:
            return self._infer(covariance, cross, targets)
        columns = tf.split(targets, len(self.kernels), axis=1)
        return GaussianPosterior.joined(
            [
                layer._infer(covariance[:, i], cross[:, i], columns[i])
                for i, layer in enumerate(self.of_kernels)
            ]
        )

    def _infer(
        self, covariance: tf.Tensor, cross: tf.Tensor, targets: tf.Tensor
    ) -> GaussianPosterior:
        """That of functions that share a kernel."""
        dtype = covariance.dtype
        factors, precision = self.factors(dtype), 1.0 / tf.cast(self.noise_variance, dtype)
        if factors is not None:
            roots = tf.sqrt(factors)
            cross, targets = cross * roots, targets * roots[:, None]
        jitter = relative_jitter(covariance, self.jitter)
        prior = factorise(covariance, jitter, name="the output layer's K_ii")
        inverse, weights, kl = regression_posterior(prior, cross, targets, precision)
        root = None
        if self.jitter < _LEAST_FOR_INVERSE:
            root, weights = _by_data(cholesky(prior), cross, targets, precision)
        return GaussianPosterior(weights, inverse, log_ratio=-kl, inverse_root=root)


def _by_data(
    tril: tf.Tensor, cross: tf.Tensor, targets: tf.Tensor, precision: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    r"""A root R of Φ = K⁻¹ - (K + τ C Cᵀ)⁻¹ with as many rows as data, [S, N, M], and a [S, M, Q].

    With A = L⁻¹ C and D = chol(I + τ Aᵀ A) they are :math:`\sqrt\tau D^{-1} A^T L^{-1}` and
    :math:`\sqrt\tau R^T D^{-1} y`. Rounding is as if of the noise's variance, so that means are off
    by a small share of their deviations; by :func:`regression_posterior` it can be many.
    """
    A = tf.linalg.triangular_solve(tril, cross)
    of_data = precision * tf.matmul(A, A, transpose_a=True)
    inner = tf.linalg.cholesky(tf.linalg.set_diag(of_data, tf.linalg.diag_part(of_data) + 1.0))
    smoother = tf.linalg.matrix_transpose(tf.linalg.triangular_solve(tril, A, adjoint=True))
    root = tf.sqrt(precision) * tf.linalg.triangular_solve(inner, smoother)
    whitened = tf.linalg.triangular_solve(inner, targets[None])
    return root, tf.sqrt(precision) * tf.matmul(root, whitened, transpose_a=True)


def _check_rows(
    inputs_name: str, inputs: Any, targets_name: str, targets: Any, *, may_miss: bool
) -> list[Array]:
    rows = [
        check_matrix(inputs_name, inputs),
        check_matrix(targets_name, targets, may_miss=may_miss),
    ]
    if len(rows[0]) != len(rows[1]):
        raise ValueError(
            f"{inputs_name} and {targets_name} must be two matrices of one length, got shapes "
            f"{list(rows[0].shape)} and {list(rows[1].shape)}."
        )
    return rows


def _positive(values: Array | tf.Tensor | float) -> Parameter:
    return Parameter(values, transform=positive(base="exp"))


def _any_length(rows: Array) -> Parameter:
    """Data as a parameter that can take more or fewer rows, also in compiled functions."""
    shape = [None, *rows.shape[1:]]
    return Parameter(rows, trainable=False, unconstrained_shape=shape, constrained_shape=shape)
