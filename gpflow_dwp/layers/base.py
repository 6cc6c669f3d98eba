"""What every layer of a deep kernel process does, and what passes between layers."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes
from gpflow.functions import MeanFunction
from gpflow.kernels import Kernel, MultioutputKernel

from gpflow_dwp.base import Seed, TargetBlocks, sizes
from gpflow_dwp.linalg import Factorised, as_jitter, explained_moments, factorise, relative_jitter
from gpflow_dwp.random import TargetNoise, ZeroNoise, as_seed
from gpflow_dwp.validation import check_instance

__all__ = ["Description", "GaussianPosterior", "GramDraw", "GramLayer", "Layer", "OutputLayer"]


class Description(NamedTuple):
    """A layer in words, as :func:`~gpflow_dwp.models.model_summary` shows it.

    :param draws: What it draws, with its shape, such as "Gram matrix [20, 20], rank 3".
    :param posterior: The family of its approximate posterior, such as "AB-GW".
    """

    draws: str
    posterior: str


class GramDraw(NamedTuple):
    """Draws of a layer's Gram matrix at the inducing points, and what targets need to join them.

    :param gram: Gram matrix at the inducing points, G_ii = F_i F_iᵀ, [S, M, M].
    :param features: Features at the inducing points, F_i, [S, M, R].
    :param below: The K_ii that came from the layer below, [S, M, M].
    :param log_ratio: log P - log Q of the draw, or its expectation, [S].
    """

    gram: tf.Tensor
    features: tf.Tensor
    below: Factorised
    log_ratio: tf.Tensor


class GaussianPosterior(NamedTuple):
    """The output layer's Gaussian posterior over functions, given K_ii.

    Its mean at a target is K_ti ``weights`` and its variance K_tt - K_ti ``inverse`` K_it. From
    pseudo-targets v of precision Λ at the inducing points come ``weights`` (K_ii + Λ⁻¹)⁻¹ v and
    ``inverse`` (K_ii + Λ⁻¹)⁻¹.

    :param weights: K_ii⁻¹ E[u], [S, M, L]: of Q outputs, or of the L functions that they mix.
    :param inverse: K_ii⁻¹ (K_ii - Cov[u]) K_ii⁻¹, [S, M, M], or [S, L, M, M] of several kernels.
    :param log_ratio: -KL[q(u) ‖ p(u)], summed over outputs, [S].
    :param inverse_root: Root of the inverse, R, [S, M, M], where ``inverse`` is Rᵀ R; gradients by
        way of it keep more digits. None where there is no such.
    """

    weights: tf.Tensor
    inverse: tf.Tensor
    log_ratio: tf.Tensor
    inverse_root: tf.Tensor | None = None

    @classmethod
    def joined(cls, parts: Sequence[GaussianPosterior]) -> GaussianPosterior:
        """That of all functions, of those of each, which have kernels of their own."""
        weights, inverses, log_ratios, roots = zip(*parts, strict=True)
        return cls(
            tf.concat(weights, axis=-1),
            tf.stack(inverses, axis=1),
            tf.add_n(log_ratios),
            None if roots[0] is None else tf.stack(roots, axis=1),
        )

    @property
    def parts(self) -> list[GaussianPosterior]:
        """That of each function, where they have kernels of their own; else all in one."""
        if self.inverse.shape.rank == 3:
            return [self]
        root = self.inverse_root
        return [
            GaussianPosterior(
                self.weights[..., i : i + 1],
                self.inverse[:, i],
                self.log_ratio,
                None if root is None else root[:, i],
            )
            for i in range(self.inverse.shape[1])
        ]


class Layer(gpflow.Module, abc.ABC):
    """A part of a model that draws something, and says what.

    :cvar least_nats: A divergence from the prior below which the layer has learned nothing.
    :ivar kernel: Its kernel, if it has one.
    """

    least_nats: ClassVar[float] = -np.inf
    kernel: Any = None

    @abc.abstractmethod
    def describe(self) -> Description:
        """Say what the layer draws, and from which posterior."""


class _KernelLayer(Layer):
    """A kernel, applied to what comes from below, and the number of inducing points."""

    kernel: Kernel

    def __init__(self, kernel: Kernel, num_inducing: int) -> None:
        check_instance(Kernel, kernel=kernel)
        super().__init__(name=type(self).__name__)
        self.kernel = kernel
        self.num_inducing = num_inducing


class GramLayer(_KernelLayer):
    """A hidden layer: draws a Gram matrix, given a covariance.

    The layer's ``kernel`` turns what comes from below (features at the bottom, a Gram matrix
    further up) into that covariance; both methods are given the covariance itself.

    :param kernel: GPflow kernel that is applied to what the layer below hands on.
    :param num_inducing: Number of inducing points, M.
    :param jitter: Added to the diagonal of K_ii in its factorisation, relative to its mean; None
        for GPflow's ``default_jitter()`` when the layer is made.
    :raises ValueError: If ``kernel`` is none of GPflow's kind, or ``jitter`` is negative or not
        finite.
    :cvar least_nats: See :class:`Layer`; signals are carried on all the same.
    :ivar num_features: ν, where G = F Fᵀ with ν columns of F that are a priori Gaussian with
        covariance K/ν; None where it is not so.
    :ivar feature_scales: s, [ν], where column j has the covariance s_j² K instead; None elsewhere.
    """

    least_nats: ClassVar[float] = 1.0
    num_features: int | None = None
    feature_scales: gpflow.Parameter | None = None

    def __init__(self, kernel: Kernel, num_inducing: int, jitter: float | None = None) -> None:
        super().__init__(kernel, num_inducing)
        self.jitter = as_jitter(jitter)

    def scales(self, dtype: tf.DType) -> tf.Tensor:
        """What features of covariance K are multiplied by, of that dtype: 1/√ν, [], or s, [ν]."""
        if self.feature_scales is not None:
            return tf.cast(self.feature_scales, dtype)
        if self.num_features is None:
            raise ValueError(f"{type(self).__name__} has no features.")
        return tf.constant(1.0 / np.sqrt(self.num_features), dtype)

    def describe(self) -> Description:
        size = self.num_inducing
        return Description(f"Gram matrix [{size}, {size}]", "")

    def _factorise(
        self, covariance: tf.Tensor, posterior_scale: tf.Tensor | None = None
    ) -> Factorised:
        """K_ii, or a posterior's scale with the jitter of K_ii."""
        jitter = relative_jitter(covariance, self.jitter)
        if posterior_scale is None:
            return factorise(covariance, jitter, name="a layer's K_ii")
        return factorise(posterior_scale, jitter, name="a layer's posterior scale")

    @abc.abstractmethod
    @check_shapes(
        "covariance: [broadcast S, M, M]",
        "seed: [2]",
        "return.gram: [S, M, M]",
        "return.features: [S, M, R]",
        "return.below.matrix: [broadcast S, M, M]",
        "return.log_ratio: [broadcast S]",
    )
    def sample_inducing(self, covariance: tf.Tensor, num_samples: int, seed: Seed) -> GramDraw:
        """Draw G_ii from the approximate posterior.

        :param covariance: K_ii, [S, M, M]; a leading 1 stands for one covariance for all draws.
        :param num_samples: Number of joint draws, S.
        :param seed: A stateless seed, [2].
        """

    @abc.abstractmethod
    @check_shapes(
        "blocks.it: [broadcast S, M, N]",
        "blocks.tt: [broadcast S, N, joint...]",
        "return.it: [S, M, N]",
        "return.tt: [S, N, joint...]",
    )
    def condition(self, draw: GramDraw, blocks: TargetBlocks, noise: TargetNoise) -> TargetBlocks:
        """Draw the rest of the Gram matrix, given G_ii: its blocks over targets.

        :param draw: What :meth:`sample_inducing` returned.
        :param blocks: The blocks K_it and K_tt that belong to the K_ii of ``draw``.
        :param noise: The targets' random numbers. Gradients may be computed in its
            ``gradient_dtype``; values are of the type of ``blocks``.
        """

    @check_shapes(
        "blocks.it: [broadcast S, M, N]",
        "blocks.tt: [broadcast S, N]",
        "return.it: [S, M, N]",
        "return.tt: [S, N]",
    )
    def expect(self, draw: GramDraw, blocks: TargetBlocks) -> TargetBlocks:
        """What :meth:`condition` gives for single targets whose random numbers are all zero."""
        num_samples, num_targets = sizes(draw.gram)[0], sizes(blocks.it)[-1]
        nothing = ZeroNoise(as_seed(0), num_samples, num_targets, blocks.it.dtype)
        return self.condition(draw, blocks, nothing)

    def sample_prior(self, covariance: tf.Tensor, seed: Seed) -> tf.Tensor:
        """Draw G_ii from :meth:`prior`, [S, M, M], for plots beside the posterior's draws.

        :param covariance: Covariance at the inducing points, K_ii, [S, M, M].
        :param seed: A stateless seed, [2].
        """
        return self.prior(covariance).sample(seed=seed)

    def prior(self, covariance: tf.Tensor) -> tfp.distributions.Distribution:
        """Return P(G_ii) given K_ii, [S, M, M]."""
        raise NotImplementedError(f"{type(self).__name__} has no prior to draw from.")


class OutputLayer(_KernelLayer):
    """The top layer: a Gaussian posterior over functions, given a covariance.

    :param kernel: GPflow kernel of what the layer below hands on, or some for several functions.
    :param num_inducing: Number of inducing points, M.
    :param mean_function: Mean function m of what comes in at the model's bottom, inputs and latent
        variables: f = m + a process of mean zero, whose posterior this is. None for no m.
    :raises ValueError: If ``kernel`` or ``mean_function`` is none of GPflow's kind.
    :cvar takes_kernels: Kinds of several kernels that the layer takes.
    :cvar least_nats: See :class:`Layer`: functions in a single direction take some three nats.
    :ivar num_outputs: Q, the number of functions; None where that is not known.
    :ivar inputs: Points at the model's bottom that the posterior depends on besides the inducing
        ones, [C, D]; None if there are none.
    :ivar weights: How often each of these counts, [C]; None for once.
    :ivar mixing: W, [Q, L], where the Q functions are mixtures of L independent ones; None where
        they are independent.
    """

    least_nats: ClassVar[float] = 3.0
    takes_kernels: ClassVar[tuple[type, ...]] = ()
    num_outputs: int | None = None
    inputs: tf.Tensor | None = None
    weights: tf.Tensor | None = None
    mixing: tf.Tensor | None = None

    def __init__(
        self, kernel: Kernel, num_inducing: int, mean_function: MeanFunction | None = None
    ) -> None:
        if mean_function is not None:
            check_instance(MeanFunction, mean_function=mean_function)
        super().__init__(kernel, num_inducing)
        if isinstance(kernel, MultioutputKernel) and not isinstance(kernel, self.takes_kernels):
            raise ValueError(
                f"kernel of a {type(self).__name__} must not be a {type(kernel).__name__}, but one "
                "that outputs share, or what a GlobalInducingGPLayer takes for several."
            )
        self.mean_function = mean_function

    def _check_number_of_kernels(self, num_functions: int) -> None:
        if isinstance(self.kernel, MultioutputKernel) and len(self.kernels) != num_functions:
            raise ValueError(
                f"kernel must hold a kernel for each of {num_functions} functions, got "
                f"{len(self.kernels)}."
            )

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Those of several functions that have kernels of their own, [L]; else the only one."""
        kernel = self.kernel
        return kernel.latent_kernels if isinstance(kernel, MultioutputKernel) else (kernel,)

    def for_predictions(self) -> OutputLayer:
        """The layer that predictions are made by: this one, or under draws of its kernel."""
        return self

    def describe(self) -> Description:
        return Description(f"functions at {self.num_inducing} points", "")

    @property
    def rows(self) -> tuple[tf.Tensor, tf.Tensor] | None:
        """The data, X [N, D] and Y [N, Q], of which the posterior is made; None where there are
        none, as it is learned."""
        return None

    def set_rows(self, X: tf.Tensor, Y: tf.Tensor, weights: tf.Tensor | None = None) -> None:
        """Take other data in place of :attr:`rows`; nothing happens where there are none.

        :param X: Inputs, [N, D].
        :param Y: Observations, [N, Q].
        :param weights: How often each row counts, [N]; None for once.
        """

    @abc.abstractmethod
    @check_shapes(
        "covariance: [S, functions..., M, M]",
        "cross: [S, functions..., M, C]",
        "targets: [C, Q]",
        "return.weights: [S, M, L]",
        "return.inverse: [S, functions..., M, M]",
        "return.log_ratio: [S]",
    )
    def infer_inducing(
        self,
        covariance: tf.Tensor,
        cross: tf.Tensor | None = None,
        targets: tf.Tensor | None = None,
    ) -> GaussianPosterior:
        """Find the posterior at the inducing points.

        :param covariance: Covariance at the inducing points, K_ii, [S, M, M], or [S, L, M, M] of
            several kernels.
        :param cross: K_ic, [S, M, C], or [S, L, M, C] of several kernels, between inducing points
            and the layer's own ``inputs``, at what is expected of these given the Gram matrices
            below; None where it has none.
        :param targets: What was observed at the layer's ``inputs``, on the scale of f and less its
            mean function; None for the observations of its :attr:`rows` as they are, or where it
            has none.
        """

    @check_shapes(
        "blocks.it: [S, functions..., M, N]",
        "blocks.tt: [S, ...]",
        "return[0]: [S, N, columns]",
        "return[1]: [S, ...]",
    )
    def condition(
        self, draw: GaussianPosterior, blocks: TargetBlocks
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Mean and covariance of the functions at the targets, before they are mixed.

        :param draw: What :meth:`infer_inducing` returned.
        :param blocks: The blocks K_it and K_tt that belong to the K_ii of ``draw``.
        :return: The mean, [S, N, L], and variances, [S, N], or the covariance, [S, N, N]; behind an
            axis of L where functions do not share them.
        """
        if blocks.it.shape.rank == 4:
            moments = [
                self.condition(part, TargetBlocks(blocks.it[:, i], blocks.tt[:, i]))
                for i, part in enumerate(draw.parts)
            ]
            means, covariances = zip(*moments, strict=True)
            return tf.concat(means, axis=-1), tf.stack(covariances, axis=1)
        if blocks.are_single:
            rooted = draw.inverse_root is not None
            projection = draw.inverse_root if rooted else draw.inverse
            mean, explained = explained_moments(projection, draw.weights, blocks.it, rooted=rooted)
            # Cancellation may leave a rounding error below zero.
            variance = tf.maximum(blocks.diagonal - explained, tf.zeros([], explained.dtype))
            return mean, variance
        mean = tf.matmul(blocks.it, draw.weights, transpose_a=True)
        if draw.inverse_root is None:
            left, right = blocks.it, tf.matmul(draw.inverse, blocks.it)
        else:
            left = right = tf.matmul(draw.inverse_root, blocks.it)
        return mean, blocks.tt - tf.matmul(left, right, transpose_a=True)

    def mix(self, mean: tf.Tensor, covariance: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Moments of the outputs, as :meth:`condition` returns those of the functions."""
        if self.mixing is None:
            return mean, covariance
        mixing = tf.cast(self.mixing, mean.dtype)
        mean = tf.matmul(mean, mixing, transpose_b=True)
        return mean, tf.einsum("ql,sl...->sq...", tf.square(mixing), covariance)
