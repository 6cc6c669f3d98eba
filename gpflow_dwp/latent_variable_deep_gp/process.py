"""Deep kernel processes with latent variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.likelihoods import Likelihood

from gpflow_dwp.base import Array, Seed, sizes
from gpflow_dwp.latent_variable_deep_gp.latent_variable import (
    LatentVariableLayer,
    RowEncoder,
    append_latents,
)
from gpflow_dwp.layers import GramLayer, OutputLayer
from gpflow_dwp.layers.global_inducing import as_inducing_points
from gpflow_dwp.layers.propagation import InducingPath, propagate_targets, sample_inducing_path
from gpflow_dwp.models import DeepKernelProcess, DeepPosterior, VariationalModel
from gpflow_dwp.models.data_checks import Batch
from gpflow_dwp.models.predictive import expected_log_likelihoods
from gpflow_dwp.objectives import BoundTerms, importance_weighted_bound
from gpflow_dwp.random import as_seed, fold_in, normal, split_seed
from gpflow_dwp.validation import check_instance, check_integers

__all__ = ["LatentVariableProcess"]


class LatentVariableProcess(VariationalModel):
    """Latent variables of each row as further inputs of a deep kernel process ("LV-DWP").

    The bound is the importance-weighted one of Salimbeni, Dutordoir, Hensman and Deisenroth (2019)
    where more than one importance sample is asked for: a row's copies see one draw of every layer.

    :param layers: A :class:`LatentVariableLayer`, then those of a deep kernel process: hidden
        layers, bottom first, and an output layer that is no regression on data.
    :param likelihood: Any GPflow likelihood.
    :param inducing_variable: Inducing inputs, [M, D + W], the last W columns of latent variables.

    All else, and what is refused, is as for :class:`DeepKernelProcess`.
    """

    def __init__(
        self,
        layers: Sequence[LatentVariableLayer | GramLayer | OutputLayer],
        likelihood: Likelihood,
        inducing_variable: InducingPoints | Array | tf.Tensor,
        num_data: int,
        num_samples: int = 2,
        *,
        num_prediction_samples: int = 100,
    ) -> None:
        super().__init__(layers, likelihood, num_data, num_samples, num_prediction_samples)
        self.inducing_variable = as_inducing_points(inducing_variable)
        check_instance(LatentVariableLayer, **{"layers[0]": self.layers[0] if layers else None})
        DeepKernelProcess(self.layers[1:], likelihood, self.inducing_variable, num_data)  # checks
        self._check_common_parts()
        if self.layers[-1].inputs is not None:
            name = type(self.layers[-1]).__name__
            raise ValueError(f"layers[-1] must be no regression on data, got a {name}.")
        if self.layers[0].doubly_reparameterised and self.num_hidden_layers:
            # Above it Gram matrices are drawn of copies jointly.
            raise ValueError("layers[0] must not be doubly_reparameterised below hidden layers.")
        check_integers(**{"columns of inducing_variable before latent ones": self.num_inputs})

    @property
    def num_inputs(self) -> int:
        return int(self.inducing_variable.Z.shape[1]) - int(self.layers[0].latent_dim)

    @property
    def num_outputs(self) -> int | None:
        return self.layers[-1].num_outputs  # type: ignore[no-any-return]

    @property
    def num_hidden_layers(self) -> int:
        return len(self.layers) - 2

    def _any_datum(self) -> Batch:
        encoder = self.layers[0].encoder
        if isinstance(encoder, RowEncoder):  # which knows no other rows
            return Batch(tf.constant(encoder.X[:1]), tf.constant(encoder.Y[:1]))
        return super()._any_datum()

    def _estimate_terms(
        self, batch: Batch, num_importance_samples: int, seed: int | tf.Tensor | None
    ) -> BoundTerms:
        X, Y, weights = batch
        latent, *hidden, output = self.layers
        S, N, K = self.num_samples, sizes(X)[0], num_importance_samples
        path_seed, latent_seed, target_seed = split_seed(as_seed(seed), 3)
        noise = normal([S, N, K, latent.latent_dim], latent_seed, X.dtype)
        latents, local_log_ratio = latent.sample(X, Y, noise)
        targets = tf.reshape(append_latents(X[None, :, None], latents), [S * N, K, -1])
        points = tf.convert_to_tensor(self.inducing_variable.Z)
        path = sample_inducing_path(hidden, output, points, S, path_seed)
        mean, covariance = propagate_targets(
            hidden, output, _repeated(path, S, N), targets, target_seed, full_cov=True
        )
        variance = tf.linalg.diag_part(covariance)
        if variance.shape.rank == 3:  # of each output, [S N, Q, K]
            variance = tf.linalg.matrix_transpose(variance)
        mean, variance = (tf.reshape(x, [S, N * K, *x.shape[2:]]) for x in (mean, variance))
        expectations = expected_log_likelihoods(
            self.likelihood, X, Y, mean, variance, K, seed=fold_in(target_seed, 0)
        )
        nothing = tf.zeros([1], X.dtype)  # latent variables are local
        log_ratios = self._with_likelihood([nothing, *path.log_ratios])
        return importance_weighted_bound(
            expectations, local_log_ratio, log_ratios, num_data=self.num_data, weights=weights
        )

    @tf.autograph.experimental.do_not_convert
    def posterior(
        self, num_samples: int | tf.Tensor | None = None, *, seed: int | tf.Tensor | None = None
    ) -> DeepPosterior:
        return _Posterior(self, self._num_draws(num_samples), as_seed(seed))


def _repeated(path: InducingPath, length: int, times: int | tf.Tensor) -> InducingPath:
    """Parts of draws with a leading axis of that length, each as often: [length times, ...]."""

    def repeat(value: tf.Tensor | None) -> tf.Tensor | None:
        is_one = value is not None and value.shape[0] == length
        return tf.repeat(value, times, axis=0) if is_one else value

    hidden, output = tf.nest.map_structure(repeat, (path.hidden, path.output))
    return InducingPath(path.points, hidden, output)


class _Posterior(DeepPosterior):
    """Draws of the process, each with latent variables from their prior."""

    def __init__(self, model: LatentVariableProcess, num_samples: Any, seed: Seed) -> None:
        seed, self._latent_seed = split_seed(seed, 2)
        latent, *hidden, output = model.layers
        points = tf.convert_to_tensor(model.inducing_variable.Z)
        super().__init__(hidden, output, model.likelihood, points, num_samples, seed)
        self.num_inputs, self._latent_dim = model.num_inputs, latent.latent_dim
        # Draws share no covariance of the inputs where each has its own.
        self.path, self._num_distinct = _repeated(self.path, 1, num_samples), num_samples

    def _propagate(
        self, X: tf.Tensor, *, full_cov: bool = False, mixed: bool = True
    ) -> tuple[tf.Tensor, tf.Tensor]:
        latents = self._shared_normal(X, self._latent_seed, self._latent_dim)
        if full_cov:
            latents = normal(tf.shape(latents), self._latent_seed, X.dtype)
        return super()._propagate(append_latents(X[None], latents), full_cov=full_cov, mixed=mixed)
