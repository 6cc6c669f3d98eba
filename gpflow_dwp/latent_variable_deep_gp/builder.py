"""Deep Gaussian processes with latent variables, by the names that the paper gives them."""

from __future__ import annotations

from typing import Literal, get_args

import gpflow
import numpy as np
from gpflow.likelihoods import Likelihood

from gpflow_dwp.base import Array, TrainingData
from gpflow_dwp.latent_variable_deep_gp.latent_variable import (
    LatentVariableLayer,
    NetworkEncoder,
    RowEncoder,
)
from gpflow_dwp.latent_variable_deep_gp.layer import LocalInducingGPLayer
from gpflow_dwp.latent_variable_deep_gp.model import LatentVariableDeepGP, LocalLayer
from gpflow_dwp.models.accepted_observations import count_functions
from gpflow_dwp.models.data_checks import check_observations
from gpflow_dwp.models.starting_values import initial_inducing
from gpflow_dwp.random import as_generator
from gpflow_dwp.validation import (
    as_weighted,
    check_arrays,
    check_choice,
    check_instance,
    check_integers,
    check_memory,
)

__all__ = ["build_latent_variable_deep_gp"]

EncoderName = Literal["network", "rows"]

# A hidden layer starts close to its linear mean.
_HIDDEN_Q_SCALE = 1e-3


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
    if likelihood is not None:
        check_instance(Likelihood, likelihood=likelihood)
    widest = X.shape[1] + latent_dim * kinds.count("LV")
    check_memory(widest, max(len(X), widest), latent_dim=latent_dim)
    rng = as_generator(seed)
    likelihood = gpflow.likelihoods.Gaussian(variance=0.01) if likelihood is None else likelihood
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
        if index == len(kinds) - 1:
            num_outputs = count_functions(likelihood, Y.shape[1])
            layers.append(LocalInducingGPLayer(kernel, points, num_outputs, jitter=jitter))
        else:
            layers.append(
                LocalInducingGPLayer(
                    kernel,
                    points,
                    width,
                    mixing=_principal_components(X, min(num_functions, width), width).T,
                    skip=True,
                    q_scale=_HIDDEN_Q_SCALE,
                    jitter=jitter,
                )
            )
    return LatentVariableDeepGP(layers, likelihood, len(X), num_samples)


def _principal_components(X: Array, number: int, width: int) -> Array:
    """The first principal directions of the data's inputs, then unit vectors, as rows."""
    _, _, directions = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    directions = directions[:number]
    components = np.eye(number, width)
    components[: len(directions)] = 0.0
    components[: len(directions), : X.shape[1]] = directions
    return components
