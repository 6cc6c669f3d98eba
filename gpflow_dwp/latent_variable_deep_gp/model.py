"""Deep Gaussian processes with latent variables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Literal, get_args

import gpflow
import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.likelihoods import Likelihood

from gpflow_dwp.base import Array, Seed, TrainingData, sizes
from gpflow_dwp.latent_variable_deep_gp.latent_variable import (
    LatentVariableLayer,
    NetworkEncoder,
    RowEncoder,
    append_latents,
)
from gpflow_dwp.latent_variable_deep_gp.layer import LocalInducingGPLayer
from gpflow_dwp.likelihoods.observed import observed
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.assembly import initial_inducing
from gpflow_dwp.models.data_checks import Batch, check_observations
from gpflow_dwp.models.mixture_posterior import MixturePosterior, snapshot
from gpflow_dwp.models.predictive import expected_log_likelihoods
from gpflow_dwp.objectives import BoundTerms, importance_weighted_bound
from gpflow_dwp.random import as_generator, as_seed, normal, split_seed
from gpflow_dwp.validation import (
    as_weighted,
    check_arrays,
    check_choice,
    check_instance,
    check_integers,
    check_memory,
)

__all__ = [
    "LatentVariableDeepGP",
    "LatentVariablePosterior",
    "LocalLayer",
    "build_latent_variable_deep_gp",
]

LocalLayer = LatentVariableLayer | LocalInducingGPLayer
"""What such a model is made of; the last one is a Gaussian process layer."""


class LatentVariableDeepGP(VariationalModel):
    """Latent-variable and Gaussian process layers in any order, ending in a Gaussian process.

    Inference is doubly stochastic (Salimbeni and Deisenroth, 2017), with the importance-weighted
    bound of Salimbeni, Dutordoir, Hensman and Deisenroth (2019) where more than one importance
    sample is asked for. A single Gaussian process layer is GPflow's ``SVGP``.
    Parameters are those of :class:`VariationalModel`.

    :raises ValueError: If the parts do not fit together, a layer comes twice, or a number is not a
        positive integer or too large for the machine's memory.
    """

    def __init__(
        self,
        layers: Sequence[LocalLayer],
        likelihood: Likelihood,
        num_data: int,
        num_samples: int = 1,
        *,
        num_prediction_samples: int = 100,
    ) -> None:
        super().__init__(layers, likelihood, num_data, num_samples, num_prediction_samples)
        self._check_parts()

    @property
    def output_layer(self) -> LocalInducingGPLayer:
        """The Gaussian process at the top."""
        layer = self.layers[-1] if self.layers else None
        if not isinstance(layer, LocalInducingGPLayer):
            raise ValueError(
                f"layers must end in a LocalInducingGPLayer, got {type(layer).__name__}."
            )
        return layer

    @property
    def num_hidden_layers(self) -> int:
        return sum(isinstance(layer, LocalInducingGPLayer) for layer in self.layers) - 1

    @property
    def natural_parameters(self) -> list[tuple[Parameter, Parameter]]:
        return [(self.output_layer.q_mu, self.output_layer.q_sqrt)]

    @property
    def num_outputs(self) -> int:
        return self.layers[-1].num_outputs

    @property
    def num_inputs(self) -> int:
        latent = [*takewhile(lambda each: isinstance(each, LatentVariableLayer), self.layers)]
        num_latents = sum(layer.latent_dim for layer in latent)
        return self.layers[len(latent)].num_inputs - num_latents

    def _estimate_terms(
        self, batch: Batch, num_importance_samples: int, seed: int | tf.Tensor | None
    ) -> BoundTerms:
        """Carry K copies of each datum, with latent variables from their posterior.

        The copies of one datum see one draw of every function: they are drawn jointly, with the
        K x K covariance of each process at their inputs. Different data are drawn apart, which
        changes no term of a sum over them. Below the first latent variables the copies coincide,
        and are one. A copy's weight must depend on its own latent variables alone where their
        gradient is doubly reparameterised: functions above count as fixed.
        """
        X, Y, weights = batch
        *hidden, output = self.layers
        seeds = split_seed(as_seed(seed), len(self.layers))
        features, copies = X[None, :, None, :], 1
        local_log_ratio, log_ratios = tf.zeros([1, 1, 1], X.dtype), []
        fix_functions = False
        for layer, layer_seed in zip(hidden, seeds, strict=False):
            is_latent = isinstance(layer, LatentVariableLayer)
            copies = num_importance_samples if is_latent else copies
            width = layer.latent_dim if is_latent else layer.num_functions
            noise = normal([self.num_samples, tf.shape(X)[0], copies, width], layer_seed, X.dtype)
            if is_latent:
                latents, log_ratio = layer.sample(X, Y, noise)
                features = append_latents(features, latents)
                local_log_ratio += log_ratio
                log_ratios.append(tf.zeros([1], X.dtype))  # they are local
                fix_functions |= layer.doubly_reparameterised and copies > 1
            else:
                features = layer.sample(
                    features, noise, full_cov=copies > 1, fix_functions=fix_functions
                )
                log_ratios.append(layer.log_ratio())
        mean, variance = output.predict(features, full_cov=False)
        log_ratios.append(output.log_ratio())
        S, N, K, Q = sizes(mean)
        mean, variance = (tf.reshape(moment, [S, N * K, Q]) for moment in (mean, variance))
        expectations = expected_log_likelihoods(
            self.likelihood, X, Y, mean, variance, K, seed=seeds[-1]
        )
        return importance_weighted_bound(
            expectations,
            local_log_ratio,
            self._with_likelihood(log_ratios),
            num_data=self.num_data,
            weights=weights,
        )

    @tf.autograph.experimental.do_not_convert
    def posterior(
        self, num_samples: int | tf.Tensor | None = None, *, seed: int | tf.Tensor | None = None
    ) -> LatentVariablePosterior:
        num_samples = self._num_draws(num_samples)
        return LatentVariablePosterior(self, num_samples, as_seed(seed))

    def _check_parts(self) -> None:
        output = self.output_layer
        if output.mixing is not None or output.skip:
            raise ValueError("layers[-1] must have neither mixing nor skip: its outputs are f.")
        width = self.num_inputs
        self._check_common_parts()
        for index, layer in enumerate(self.layers):
            if isinstance(layer, LatentVariableLayer):
                width += layer.latent_dim
                continue
            if not isinstance(layer, LocalInducingGPLayer):
                raise ValueError(
                    f"layers[{index}] must be a LatentVariableLayer or a LocalInducingGPLayer, "
                    f"got {type(layer).__name__}."
                )
            if layer.num_inputs != width:
                raise ValueError(
                    f"layers[{index}] has inducing inputs with {layer.num_inputs} columns, but "
                    f"{width} come from below."
                )
            width = layer.num_outputs


class LatentVariablePosterior(MixturePosterior):
    """S draws of all below the output, with latent variables from their prior."""

    def __init__(self, model: LatentVariableDeepGP, num_samples: int, seed: Seed) -> None:
        self._target_seed, function_seed = split_seed(seed, 2)
        self._layers, likelihood = snapshot((model.layers, model.likelihood))
        super().__init__(
            likelihood,
            num_inputs=model.num_inputs,
            num_outputs=model.num_outputs,
            num_inducing=max(
                layer.num_inducing
                for layer in model.layers
                if isinstance(layer, LocalInducingGPLayer)
            ),
            num_samples=num_samples,
            function_seed=function_seed,
        )

    def _propagate(
        self, X: tf.Tensor, *, full_cov: bool = False, mixed: bool = True
    ) -> tuple[tf.Tensor, tf.Tensor]:
        def noise(seed: Seed, width: int) -> tf.Tensor:
            if full_cov:
                # Joint draws need numbers that are independent even where two points coincide.
                return normal([self.num_samples, tf.shape(X)[0], width], seed, X.dtype)
            return self._shared_normal(X, seed, width)

        *hidden, output = self._layers
        features = X[None]
        seeds = split_seed(self._target_seed, len(self._layers))
        for layer, layer_seed in zip(hidden, seeds, strict=False):
            if isinstance(layer, LatentVariableLayer):
                features = append_latents(features, noise(layer_seed, layer.latent_dim))
            else:
                numbers = noise(layer_seed, layer.num_functions)
                features = layer.sample(features, numbers, full_cov=full_cov)
        return output.predict(features, full_cov=full_cov)


EncoderName = Literal["network", "rows"]


def build_latent_variable_deep_gp(
    data: TrainingData,
    architecture: str = "LV-GP-GP",
    *,
    latent_dim: int = 1,
    num_inducing: int = 128,
    num_functions: int = 5,
    likelihood: Likelihood | None = None,
    encoder: EncoderName = "network",
    doubly_reparameterised: bool = False,
    num_samples: int = 1,
    jitter: float | None = None,
    seed: int = 0,
) -> LatentVariableDeepGP:
    """Build a deep Gaussian process with the defaults of its paper.

    Salimbeni, Dutordoir, Hensman and Deisenroth (2019), appendix A, standardise inputs and outputs
    on the training rows first; these defaults expect that. All kernels are squared exponential,
    with one lengthscale for each input that starts at the root of their number.

    :param data: Training inputs [N, D] and observations [N, P].
    :param architecture: Layers, bottom first: "GP" and "LV" joined by hyphens, the last one "GP".
    :param latent_dim: Number of latent variables, W, of every latent-variable layer.
    :param num_inducing: Number of inducing points, M: inducing inputs start on cluster centres of
        the training inputs, at latent variables on standard normal draws.
    :param num_functions: Processes of a hidden layer, at most as many as it has inputs. They are
        mixed by the first principal components of X, where X has fewer columns also by latent
        variables, and added to the layer's inputs.
    :param likelihood: None for a Gaussian one with variance 0.01.
    :param encoder: Of every latent-variable layer: ``"network"`` for a :class:`NetworkEncoder`,
        ``"rows"`` for ``latent_variable.RowEncoder``, a mean and a standard deviation of its own
        for each training row.
    :param doubly_reparameterised: See :class:`LatentVariableLayer`.
    :param num_samples: Number of draws in each training step, S.
    :param jitter: Added to the diagonals that are factorised, relative to the mean variance; None
        for GPflow's ``default_jitter()`` when the model is built.
    :param seed: Seed of the starting values.
    :raises ValueError: If ``architecture`` is not of that form, a number is not a positive
        integer or needs more memory than there is, or the data are not two finite matrices of one
        length.
    """
    X, Y = check_arrays(*as_weighted(data)[:2], may_miss=True)
    check_integers(latent_dim=latent_dim, num_inducing=num_inducing, num_functions=num_functions)
    check_instance(str, architecture=architecture)
    kinds = architecture.split("-")
    if kinds[-1] != "GP" or not set(kinds) <= {"GP", "LV"}:
        raise ValueError(
            f"architecture must be GP and LV joined by hyphens and end in GP, got {architecture!r}."
        )
    check_choice(get_args(EncoderName), encoder=encoder)
    likelihood = gpflow.likelihoods.Gaussian(variance=0.01) if likelihood is None else likelihood
    check_instance(Likelihood, likelihood=likelihood)
    widest = X.shape[1] + latent_dim * kinds.count("LV")
    check_memory(widest, max(len(X), widest), latent_dim=latent_dim)
    rng = as_generator(seed)
    check_observations(likelihood, Y)
    points, _ = initial_inducing(X, Y, num_inducing, "kmeans", rng)
    layers: list[LocalLayer] = []
    for index, kind in enumerate(kinds):
        if kind == "LV":
            of_rows = (
                RowEncoder(X, Y, latent_dim)
                if encoder == "rows"
                else NetworkEncoder(X.shape[1] + Y.shape[1], latent_dim, seed=rng)
            )
            layers.append(
                LatentVariableLayer(of_rows, doubly_reparameterised=doubly_reparameterised)
            )
            noise = rng.standard_normal((len(points), latent_dim))
            points = np.concatenate([points, noise], axis=1)
            continue
        width = points.shape[1]
        kernel = gpflow.kernels.SquaredExponential(lengthscales=np.full(width, np.sqrt(width)))
        of_hidden: dict[str, Any] = {}
        num_outputs = observed(likelihood).num_functions(Y.shape[1])
        if index < len(kinds) - 1:  # a hidden layer, which starts close to its linear mean
            mixing = _principal_components(X, min(num_functions, width), width).T
            num_outputs, of_hidden = width, {"mixing": mixing, "skip": True, "q_scale": 1e-3}
        layers.append(LocalInducingGPLayer(kernel, points, num_outputs, jitter=jitter, **of_hidden))
    return LatentVariableDeepGP(layers, likelihood, len(X), num_samples)


def _principal_components(X: Array, number: int, width: int) -> Array:
    """The first principal directions of the data's inputs, then unit vectors, as rows."""
    _, _, directions = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    directions = directions[:number]
    components = np.eye(number, width)
    components[: len(directions)] = 0.0
    components[: len(directions), : X.shape[1]] = directions
    return components
