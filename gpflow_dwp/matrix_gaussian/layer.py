"""A layer of a neural network with a matrix-variate Gaussian posterior over its weights."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes
from gpflow import Parameter, default_float, default_jitter

from gpflow_dwp.base import Seed
from gpflow_dwp.layers.base import Description, Layer
from gpflow_dwp.likelihoods.gamma_gaussian import gamma_kl
from gpflow_dwp.matrix_gaussian.covariance_root import (
    CovarianceFamily,
    CovarianceRoot,
    expected_matrix_normal_kl,
    expected_squares,
    times_root,
)
from gpflow_dwp.papers import bibtex
from gpflow_dwp.random import as_generator, normal, split_seed
from gpflow_dwp.validation import check_flags, check_integers, check_memory, check_positive

__all__ = ["MatrixGaussianLayer", "Preactivation", "dropout_kl"]

# Kingma, Salimans and Welling (2015), appendix C: a cubic fit, for α up to 1.
_CUBIC = (1.16145124, -1.50204118, 0.58629921)

# The prior of the precisions τ_r and τ_c: concentration and rate.
_PRIOR = (1.0, 0.5)

_PAPER = bibtex(
    "inproceedings",
    "louizos2016structured",
    title="Structured and efficient variational deep learning with matrix {G}aussian posteriors",
    author="Louizos, Christos and Welling, Max",
    booktitle="International Conference on Machine Learning",
    year=2016,
    doi="10.48550/arXiv.1603.04733",
)


class Preactivation(NamedTuple):
    """Each point's marginal distribution, N(mean_n, row_variance_n V), or the joint one.

    :param mean: Mean of the outputs, [S, N, Q].
    :param row_variance: [S, N]; [S, N, N] where the covariance between points was asked for.
    """

    mean: tf.Tensor
    row_variance: tf.Tensor


def dropout_kl(alpha: tf.Tensor, largest_alpha: float) -> tf.Tensor:
    """KL of one multiplicative-noise posterior N(θ, α θ²) from the log-uniform prior.

    The approximation of Kingma, Salimans and Welling (2015, equation 14), whose constant is
    arbitrary because the prior is improper; here it is 0 at the largest α, and positive below.

    :param alpha: Variance of the noise, α, of any shape.
    :param largest_alpha: The upper bound of α, at most 1.
    """

    def negative(a: tf.Tensor) -> tf.Tensor:
        return 0.5 * tf.math.log(a) + a * (_CUBIC[0] + a * (_CUBIC[1] + a * _CUBIC[2]))

    return negative(tf.constant(largest_alpha, alpha.dtype)) - negative(alpha)


class MatrixGaussianLayer(Layer):
    """B = A W with W ~ MN(M, U, V), conditioned on pseudo-data B̃ = Ã W.

    Louizos and Welling (2016), sections 2.2 to 2.4. The inputs get a column of ones and are
    divided by the square root of their number D; so are the pseudo-inputs. Each point is drawn
    from its own marginal (equation 8), given one draw of the pseudo-data.

    :param num_inputs: Columns of the inputs, without that of ones: D - 1.
    :param num_outputs: Number of output columns, Q.
    :param row_covariance: Family of U^½, [D, D].
    :param column_covariance: Family of V^½, [Q, Q].
    :param num_pseudo_data: Number of pseudo-data, P; 0 for none. The paper asks for less than D,
        the rank of the linear kernel; jitter on its diagonal allows for any number.
    :param largest_dropout: Upper bound of the pseudo-data's dropout rate α, above 0, at most 1.
    :param zero_mean: Whether M is zero (equation 10).
    :param learn_precision: Whether the prior is MN(0, I/τ_r, I/τ_c) with Gam(1, ½) priors and
        the best Gamma posteriors over both precisions (section 4.1), instead of MN(0, I, I).
    :param seed: For the starting values: M as He et al. (2015), that is, with M/√D of variance 2
        over the number of inputs, and zero in the row of the biases; Ã and B̃ uniform in ±0.01.
    :raises ValueError: If an argument is not one of its choices or out of range.
    """

    papers: ClassVar[tuple[str, ...]] = (_PAPER,)

    def __init__(
        self,
        num_inputs: int,
        num_outputs: int,
        *,
        row_covariance: CovarianceFamily = "diagonal",
        column_covariance: CovarianceFamily = "diagonal",
        num_pseudo_data: int = 0,
        largest_dropout: float = 0.005,
        zero_mean: bool = False,
        learn_precision: bool = False,
        seed: int | None = 0,
    ) -> None:
        super().__init__(name="MatrixGaussianLayer")
        check_integers(num_inputs=num_inputs, num_outputs=num_outputs)
        check_integers(at_least=0, num_pseudo_data=num_pseudo_data)
        check_flags(zero_mean=zero_mean, learn_precision=learn_precision)
        check_positive(largest_dropout=largest_dropout)
        if largest_dropout > 1.0:
            raise ValueError(
                f"largest_dropout must be above 0 and at most 1, got {largest_dropout}."
            )
        check_memory(num_inputs + 1, num_outputs, num_inputs=num_inputs, num_outputs=num_outputs)
        self.num_inputs, self.num_outputs = num_inputs, num_outputs
        self.row_covariance = row_covariance
        self.column_covariance = column_covariance
        self.num_pseudo_data, self.largest_dropout = num_pseudo_data, largest_dropout
        self.zero_mean, self.learn_precision = zero_mean, learn_precision
        rng = as_generator(seed)
        dtype, width = default_float(), num_inputs + 1
        start = rng.normal(scale=np.sqrt(2.0 * width / num_inputs), size=(width, num_outputs))
        start[-1] = 0.0
        self.mean = None if zero_mean else Parameter(start)
        self.row_root = CovarianceRoot("row_covariance", row_covariance, width, rng)
        self.column_root = CovarianceRoot("column_covariance", column_covariance, num_outputs, rng)
        if num_pseudo_data:
            bounded = tfp.bijectors.Sigmoid(
                low=np.zeros((), dtype), high=np.asarray(largest_dropout, dtype)
            )
            start = rng.uniform(-0.01, 0.01, size=(num_pseudo_data, width))
            self.pseudo_inputs = Parameter(start)
            start = rng.uniform(-0.01, 0.01, size=(num_pseudo_data, num_outputs))
            self.pseudo_outputs = Parameter(start)
            start = np.full(2, 0.5 * largest_dropout)
            self.dropout = Parameter(start, transform=bounded)

    @check_shapes("inputs: [S, N, D]", "seed: [2]")
    def propagate(
        self, inputs: tf.Tensor, num_samples: int, seed: Seed, *, full_cov: bool = False
    ) -> Preactivation:
        """Return each point's distribution, given one draw of the pseudo-data for each sample.

        Pseudo-outputs have GPflow's ``default_jitter()`` added to their variance.

        :param inputs: Inputs without the column of ones; S is ``num_samples`` or 1.
        :param num_samples: Number of draws of the pseudo-data, S.
        :param seed: For the pseudo-data.
        :param full_cov: Whether the covariance between the points is wanted.
        """
        A = self._augmented(inputs)
        root = self.row_root.operator()
        rooted = times_root(A, root)
        mean = self._linear(A)
        variance = _inner_products(rooted, full_cov=full_cov)
        if not self.num_pseudo_data:
            return Preactivation(mean, variance)

        pseudo = self._condition(root, num_samples, seed)
        sigma_12 = tf.matmul(pseudo.rooted, rooted, transpose_b=True)
        solved = tf.linalg.triangular_solve(pseudo.factor, sigma_12)
        deviation = pseudo.outputs - self._linear(pseudo.inputs)
        residual = tf.linalg.triangular_solve(pseudo.factor, deviation)
        variance -= _inner_products(tf.linalg.matrix_transpose(solved), full_cov=full_cov)
        if not full_cov:
            # Rounding may take what the pseudo-data explain entirely below zero.
            variance = tf.maximum(variance, 1e-12)
        return Preactivation(mean + tf.matmul(solved, residual, transpose_a=True), variance)

    @check_shapes("inputs: [draws, N, D]", "seed: [2]", "return: [S, N, Q]")
    def sample_functions(self, inputs: tf.Tensor, num_samples: int, seed: Seed) -> tf.Tensor:
        """Draw outputs of all points jointly: A W with one W for each draw of the pseudo-data.

        W is drawn from the posterior and then moved by Matheron's rule to its law given the
        pseudo-outputs, whose noise ε ~ MN(0, jitter I, V) is drawn as well:
        W + U Ãᵀ (Ã U Ãᵀ + jitter I)⁻¹ (B̃ - Ã W - ε). No matrix over the points is factorised.

        :param inputs: Inputs without the column of ones; S is ``num_samples`` or 1.
        :param num_samples: Number of joint draws, S.
        :param seed: For weights and pseudo-data.
        """
        weight_seed, noise_seed, pseudo_seed = split_seed(seed, 3)
        A, root = self._augmented(inputs), self.row_root.operator()
        size = [num_samples, self.num_inputs + 1, self.num_outputs]
        weights = self._correlated(root.matmul(normal(size, weight_seed, A.dtype)))
        if self.mean is not None:
            weights += tf.convert_to_tensor(self.mean)
        if self.num_pseudo_data:
            pseudo = self._condition(root, num_samples, pseudo_seed)
            size = [num_samples, self.num_pseudo_data, self.num_outputs]
            noise = np.sqrt(default_jitter()) * self._correlated(normal(size, noise_seed, A.dtype))
            deviation = pseudo.outputs - tf.matmul(pseudo.inputs, weights) - noise
            solved = tf.linalg.cholesky_solve(pseudo.factor, deviation)
            weights += root.matmul(tf.matmul(pseudo.rooted, solved, transpose_a=True))
        return tf.matmul(A, weights)

    @check_shapes("noise: [S, N, Q]", "return: [S, N, Q]")
    def sample(self, preactivation: Preactivation, noise: tf.Tensor) -> tf.Tensor:
        """Draw outputs, each point on its own.

        :param preactivation: What :meth:`propagate` returned.
        :param noise: Standard normal numbers.
        """
        scale = tf.sqrt(preactivation.row_variance)[..., None]
        return preactivation.mean + scale * self._correlated(noise)

    def describe(self) -> Description:
        return Description(
            f"weights [{self.num_inputs + 1}, {self.num_outputs}]",
            f"matrix Gaussian, {self.row_covariance} and {self.column_covariance}",
        )

    def kl_divergence(self) -> tf.Tensor:
        """KL of all posteriors of the layer (weights, precisions, pseudo-data) from their priors.

        :return: Nats, []; that of the pseudo-data up to the constant of :func:`dropout_kl`.
        """
        roots = self.row_root.operator(), self.column_root.operator()
        squares, dtype = expected_squares(self.mean, *roots), roots[0].dtype
        kl, precision, log_precision = (tf.constant(each, dtype) for each in (0.0, 1.0, 0.0))
        if self.learn_precision:
            concentration, rate = self._precision(squares)
            kl = 2.0 * gamma_kl(concentration, rate, *_PRIOR)
            precision = tf.square(concentration / rate)
            log_precision = 2.0 * (tf.math.digamma(concentration) - tf.math.log(rate))
        kl += expected_matrix_normal_kl(
            squares, *roots, precision=precision, log_precision=log_precision
        )
        if self.num_pseudo_data:
            counts = np.array([self.num_inputs + 1.0, self.num_outputs]) * self.num_pseudo_data
            each = dropout_kl(tf.convert_to_tensor(self.dropout), self.largest_dropout)
            kl += tf.reduce_sum(tf.constant(counts, dtype) * each)
        return kl

    def _precision(self, squares: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Concentration and rate of q(τ_r) and q(τ_c), the same for both, given E ‖W‖².

        The best a is a₀ + ½ D Q, and the best b of one, given the other, b₀ + ½ E[τ] E ‖W‖² with
        E[τ] = a/b of the other. Both then have the same b, with b² = b₀ b + ½ a E ‖W‖².
        """
        prior_concentration, prior_rate = _PRIOR
        best = prior_concentration + 0.5 * (self.num_inputs + 1) * self.num_outputs
        root = tf.sqrt(prior_rate**2 + 2.0 * best * squares)
        return tf.constant(best, squares.dtype), 0.5 * (prior_rate + root)

    def _augmented(self, inputs: tf.Tensor) -> tf.Tensor:
        ones = tf.ones_like(inputs[..., :1])
        return tf.concat([inputs, ones], axis=-1) / np.sqrt(self.num_inputs + 1.0)

    def _correlated(self, noise: tf.Tensor) -> tf.Tensor:
        """Give each row the covariance V."""
        return times_root(noise, self.column_root.operator())

    def _condition(
        self, root: tf.linalg.LinearOperator, num_samples: int, seed: Seed
    ) -> _PseudoData:
        draws = []
        parts = (self.pseudo_inputs, self.pseudo_outputs)
        for index, (part, own) in enumerate(zip(parts, split_seed(seed, 2), strict=True)):
            value = tf.convert_to_tensor(part)
            noise = normal([num_samples, *value.shape], own, value.dtype)
            draws.append(value * (1.0 + tf.sqrt(self.dropout[index]) * noise))
        inputs = draws[0] / np.sqrt(self.num_inputs + 1.0)
        rooted = times_root(inputs, root)
        sigma_11 = tf.matmul(rooted, rooted, transpose_b=True)
        jitter = tf.eye(self.num_pseudo_data, dtype=rooted.dtype) * default_jitter()
        return _PseudoData(inputs, draws[1], rooted, tf.linalg.cholesky(sigma_11 + jitter))

    def _linear(self, A: tf.Tensor) -> tf.Tensor:
        if self.mean is None:
            return tf.zeros(tf.concat([tf.shape(A)[:-1], [self.num_outputs]], axis=0), A.dtype)
        return tf.linalg.matmul(A, tf.convert_to_tensor(self.mean))


class _PseudoData(NamedTuple):
    """Draws of Ã [S, P, D] and B̃ [S, P, Q], Ã U^½ [S, P, D], and chol(Ã U Ãᵀ + jitter I)."""

    inputs: tf.Tensor
    outputs: tf.Tensor
    rooted: tf.Tensor
    factor: tf.Tensor


def _inner_products(rows: tf.Tensor, *, full_cov: bool) -> tf.Tensor:
    if full_cov:
        return tf.matmul(rows, rows, transpose_b=True)
    return tf.reduce_sum(tf.square(rows), axis=-1)
