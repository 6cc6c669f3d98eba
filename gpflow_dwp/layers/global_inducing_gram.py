"""The hidden layer of a deep Gaussian process, which hands on its features' Gram matrix."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.kernels import Kernel
from gpflow.utilities import positive

from gpflow_dwp.base import Array, Seed
from gpflow_dwp.layers._features import FeatureLayer
from gpflow_dwp.layers.base import Description, GramDraw
from gpflow_dwp.layers.global_inducing import pseudo_target_parameters
from gpflow_dwp.linalg import Factorised, cholesky, factorise
from gpflow_dwp.papers import GLOBAL_INDUCING_POINTS
from gpflow_dwp.random import as_generator, normal
from gpflow_dwp.validation import as_real_array, check_integers, check_memory, check_positive

__all__ = ["GlobalInducingGramLayer"]


class GlobalInducingGramLayer(FeatureLayer):
    r"""Draws ν Gaussian process features, F, and hands on G = F Fᵀ/ν, or F diag(s²) Fᵀ.

    A priori G ~ W(K/ν, ν), as in a Wishart layer. With ``feature_scales`` that are learned, s, the
    features count differently: an isotropic kernel of G is then one of F with a lengthscale for
    each feature (automatic relevance determination), and no Wishart layer has this prior.

    The posterior is over the features, and knows their rotation: each column has its own
    pseudo-targets, all share their precision,

    .. math:: q(u_j \mid K) \propto \mathcal N(u_j; 0, K)\, \mathcal N(v_j; u_j, \Lambda^{-1}),
              \quad \Lambda = L_\Lambda L_\Lambda^T

    (Ober and Aitchison, "Global inducing point variational posteriors for Bayesian neural networks
    and deep Gaussian processes", 2021, equation 9). With K = L Lᵀ and u = L w, the whitened w is
    Gaussian with covariance B⁻¹ and mean B⁻¹ Lᵀ Λ v, where B = I + Lᵀ Λ L, and the log ratio is

    .. math:: -\mathrm{KL} = -\tfrac12 \{\nu (\operatorname{tr} B^{-1} - M + \log|B|)
              + \|\mathrm E[w]\|^2\}.

    Further parameters are those of :class:`GramLayer`.

    :param width: Number of features, ν.
    :param pseudo_targets: Starting values of v, [M, ν]; None for standard normal ones.
    :param precision: Starting value of Λ: a positive number times the identity.
    :param feature_scales: Starting values of s, [ν]; None for 1/√ν, which is not learned.
    :param seed: For the starting values of v.
    :raises ValueError: If an argument is not as said here, or too large for the machine's memory.
    """

    papers: ClassVar[tuple[str, ...]] = (GLOBAL_INDUCING_POINTS,)

    def __init__(
        self,
        kernel: Kernel,
        width: int,
        num_inducing: int,
        *,
        pseudo_targets: Array | tf.Tensor | None = None,
        precision: float = 1.0,
        feature_scales: Array | None = None,
        jitter: float | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        check_integers(width=width, num_inducing=num_inducing)
        check_memory(num_inducing, max(width, num_inducing), width=width, num_inducing=num_inducing)
        shape = (int(num_inducing), int(width))
        if pseudo_targets is None:
            pseudo_targets = as_generator(seed).standard_normal(shape)
        elif (given := as_real_array("pseudo_targets", pseudo_targets).shape) != shape:
            raise ValueError(f"pseudo_targets must have shape {list(shape)}, got {list(given)}.")
        super().__init__(kernel, int(num_inducing), jitter)
        self.width = self.num_features = int(width)
        self.pseudo_targets, self.precision_tril = pseudo_target_parameters(
            pseudo_targets, precision
        )
        if feature_scales is not None:
            check_positive(size=self.width, feature_scales=feature_scales)
            self.feature_scales = Parameter(feature_scales, transform=positive(base="exp"))

    def describe(self) -> Description:
        return Description(
            f"features [{self.num_inducing}, {self.width}]", "Gaussian, global inducing"
        )

    def sample_prior(self, covariance: tf.Tensor, seed: Seed) -> tf.Tensor:
        # One draw is one feature, on an axis before those of S and of a single column.
        features = self.prior(covariance).sample(self.width, seed=seed)
        features *= tf.reshape(self.scales(features.dtype), [-1, 1, 1, 1])
        return tf.einsum("kscm,kscn->smn", features, features)

    @inherit_check_shapes
    def sample_inducing(self, covariance: tf.Tensor, num_samples: int, seed: Seed) -> GramDraw:
        below = self._factorise(covariance)
        tril, inverse_root, mean, log_det = self._whitened_posterior(below)
        noise = normal([num_samples, self.num_inducing, self.width], seed, covariance.dtype)
        whitened = mean + tf.matmul(inverse_root, noise, transpose_a=True)
        features = self.scales(tril.dtype) * tf.matmul(tril, whitened)

        trace = tf.reduce_sum(tf.square(inverse_root), axis=[-2, -1])
        volume = self.width * (trace - self.num_inducing + log_det)
        return GramDraw(
            gram=tf.matmul(features, features, transpose_b=True),
            features=features,
            below=below,
            log_ratio=-0.5 * (volume + tf.reduce_sum(tf.square(mean), axis=[-2, -1])),
        )

    @check_shapes("covariance: [S, M, M]")
    def prior(self, covariance: tf.Tensor) -> tfp.distributions.MultivariateNormalTriL:
        """Return P(u_j) given K_ii, [S, M, M]: batch shape [S, 1], event shape [M]."""
        scale_tril = cholesky(self._factorise(covariance))
        return tfp.distributions.MultivariateNormalTriL(scale_tril=scale_tril[:, None])

    @check_shapes("covariance: [S, M, M]")
    def posterior(self, covariance: tf.Tensor) -> tfp.distributions.MultivariateNormalTriL:
        """Return Q(u_j) given K_ii, [S, M, M]: batch shape [S, ν], event shape [M]."""
        tril, inverse_root, mean, _ = self._whitened_posterior(self._factorise(covariance))
        # A lower-triangular root of L B⁻¹ Lᵀ, from an upper-triangular one.
        root = tf.matmul(tril, inverse_root, transpose_b=True)
        upper = tf.linalg.qr(tf.linalg.matrix_transpose(root)).r
        signs = tf.sign(tf.linalg.diag_part(upper))
        scale_tril = tf.linalg.matrix_transpose(signs[..., None] * upper)
        return tfp.distributions.MultivariateNormalTriL(
            loc=tf.linalg.matrix_transpose(tf.matmul(tril, mean)), scale_tril=scale_tril[:, None]
        )

    def _whitened_posterior(
        self, below: Factorised
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """L, C⁻¹ where B = C Cᵀ, E[w] and log|B|."""
        tril = cholesky(below)
        precision_tril = tf.cast(self.precision_tril, tril.dtype)
        pseudo_targets = tf.cast(self.pseudo_targets, tril.dtype)
        observed = tf.matmul(precision_tril, tril, transpose_a=True)
        identity = tf.eye(self.num_inducing, batch_shape=[1], dtype=tril.dtype)
        # B's eigenvalues are at least 1, so it needs no jitter.
        inner = identity + tf.matmul(observed, observed, transpose_a=True)
        inner_tril = cholesky(factorise(inner, None, name="a layer's I + Lᵀ Λ L"))
        inverse_root = tf.linalg.triangular_solve(inner_tril, identity)
        information = tf.matmul(
            observed,
            tf.matmul(precision_tril, pseudo_targets, transpose_a=True)[None],
            transpose_a=True,
        )
        mean = tf.matmul(inverse_root, tf.matmul(inverse_root, information), transpose_a=True)
        log_det = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(inner_tril)), axis=-1)
        return tril, inverse_root, mean, log_det
