"""A fixed set of draws of a deep kernel process, and the predictions that they make."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import tensorflow as tf
from gpflow import default_float
from gpflow.base import InputData
from gpflow.likelihoods import Likelihood

from gpflow_dwp.base import Seed
from gpflow_dwp.kernels.draws import KernelDraws, SeparateDraws
from gpflow_dwp.layers import GramLayer, OutputLayer
from gpflow_dwp.layers.base import GaussianPosterior
from gpflow_dwp.layers.propagation import (
    InducingPath,
    propagate_targets,
    sample_gram_matrices,
    sample_inducing_path,
)
from gpflow_dwp.layers.rows import NearestRows
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models.data_checks import check_inputs
from gpflow_dwp.models.mixture_posterior import MixturePosterior, snapshot
from gpflow_dwp.random import split_seed

__all__ = ["DeepPosterior"]

_DRAWS = (KernelDraws, SeparateDraws)


class DeepPosterior(MixturePosterior):
    """S draws of all layers at the inducing points: see :class:`MixturePosterior`.

    :param hidden: Hidden layers, bottom first.
    :param output: The output layer.
    :param likelihood: The likelihood.
    :param points: Inducing inputs, [M, D].
    :param num_samples: Number of joint draws, S.
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
        hidden, output, likelihood = snapshot((tuple(hidden), output, likelihood))
        output = output.for_predictions()
        kernel = output.kernel
        num_distinct = kernel.num_draws if isinstance(kernel, _DRAWS) else 1
        num_entries, num_inputs = points.shape
        if isinstance(output, NearestRows) and output.num_neighbours:
            num_near = output.num_neighbours + 1
            num_entries = len(output.kernels) * num_near * (num_near + num_entries)
        super().__init__(
            likelihood,
            num_inputs=num_inputs,
            num_outputs=output.num_outputs,
            num_inducing=num_entries,
            num_samples=num_samples,
            num_distinct=None if hidden else num_distinct,
            function_seed=function_seed,
            mixing=output.mixing,
        )
        self.hidden = hidden
        self.output = output
        self.path: InducingPath = sample_inducing_path(
            hidden,
            output,
            points,
            num_samples,
            path_seed,
            warp_of(likelihood),
            for_predictions=True,
        )

    @property
    def draws_differ(self) -> bool:
        """Whether each draw has functions of its own distribution, as below hidden layers."""
        return bool(self.hidden) or isinstance(self.output.kernel, _DRAWS)

    def spread_kernel_draws(self) -> None:
        """Give each of the S draws one of the kernel's draws, if it has some.

        By blocks: in turn they would go with low bits of quasi-random numbers.
        """
        if not isinstance(self.output.kernel, _DRAWS):
            return
        draws = tf.range(self.num_samples) * self._num_distinct // self.num_samples
        self.output = copy.copy(self.output)
        self.output.kernel = self.output.kernel.take(draws)
        parts = (part if part is None else tf.gather(part, draws) for part in self.path.output)
        self.path = self.path._replace(output=GaussianPosterior(*parts))
        self._num_distinct, self._compiled = self.num_samples, {}

    def _sample_functions(self, X: tf.Tensor, *, full_cov: bool) -> tf.Tensor:
        spread = copy.copy(self)
        spread.spread_kernel_draws()
        return super(DeepPosterior, spread)._sample_functions(X, full_cov=full_cov)

    def gram_matrices(self, Xnew: InputData | None = None) -> list[tf.Tensor]:
        """Return every hidden layer's Gram matrix, bottom first.

        :param Xnew: Inputs, [N, D], drawn jointly, as for ``sample_f``; None for the inducing
            points.
        :return: [S, N, N] each, or [S, M, M].
        :raises ValueError: If ``Xnew`` is not a finite matrix with D columns.
        """
        grams = [draw.gram for draw in self.path.hidden]
        if Xnew is not None:
            X = check_inputs(self, Xnew, "Xnew")
            grams = sample_gram_matrices(self.hidden, self.path, X, self._target_seed)
        return [tf.cast(gram, default_float()) for gram in grams]

    def _propagate(
        self, X: tf.Tensor, *, full_cov: bool = False, mixed: bool = True
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return propagate_targets(
            self.hidden,
            self.output,
            self.path,
            X,
            self._target_seed,
            tf.zeros([1, 1], X.dtype),
            full_cov=full_cov,
            mixed=mixed,
        )
