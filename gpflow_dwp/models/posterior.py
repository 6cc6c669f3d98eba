"""A fixed set of draws of a deep kernel process, and the predictions that they make."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from gpflow.likelihoods import Likelihood

from gpflow_dwp.base import Seed
from gpflow_dwp.layers import (
    GramLayer,
    InducingPath,
    OutputLayer,
    propagate_targets,
    sample_inducing_path,
)
from gpflow_dwp.models.mixture_posterior import MixturePosterior
from gpflow_dwp.random import split_seed

__all__ = ["DeepPosterior"]


class DeepPosterior(MixturePosterior):
    """S draws of all layers at the inducing points: see :class:`MixturePosterior`.

    :param hidden: Hidden layers, bottom first.
    :param output: The output layer.
    :param likelihood: The likelihood.
    :param points: Inducing inputs, [M, D].
    :param num_samples: S.
    :param seed: A stateless seed, [2].
    """

    def __init__(
        self,
        hidden: Sequence[GramLayer],
        output: OutputLayer,
        likelihood: Likelihood,
        points: tf.Tensor,
        num_samples: int,
        seed: Seed,
    ) -> None:
        path_seed, self._target_seed, function_seed = split_seed(seed, 3)
        num_inducing, num_inputs = points.shape
        super().__init__(
            likelihood,
            num_inputs=num_inputs,
            num_inducing=num_inducing,
            num_samples=num_samples,
            function_seed=function_seed,
        )
        self._hidden = hidden
        self._output = output
        self.path: InducingPath = sample_inducing_path(
            hidden, output, points, num_samples, path_seed
        )

    def gram_matrices(self) -> list[tf.Tensor]:
        """Return every hidden layer's Gram matrix of the inducing points, [S, M, M] each."""
        return [draw.gram for draw in self.path.hidden]

    def _propagate(self, X: tf.Tensor, *, full_cov: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        return propagate_targets(
            self._hidden,
            self._output,
            self.path,
            X,
            self.num_samples,
            self._target_seed,
            full_cov=full_cov,
        )
