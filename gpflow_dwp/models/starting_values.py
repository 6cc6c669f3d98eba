"""Where a model's parameters start."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.likelihoods import Likelihood
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from gpflow_dwp.base import Array
from gpflow_dwp.layers.global_inducing import as_inducing_points
from gpflow_dwp.likelihoods import HeteroskedasticGaussian
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models.accepted_observations import count_functions

__all__ = [
    "initial_inducing",
    "initial_precision",
    "initial_pseudo_targets",
]

_WITH_SCALE = (gpflow.likelihoods.Gaussian, gpflow.likelihoods.StudentT, HeteroskedasticGaussian)


def initial_inducing(
    X: Array,
    Y: Array,
    num_inducing: int,
    inducing: str | InducingPoints | Array,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Choose inducing inputs, [M, D], and observations for them, [M, P]."""
    Y = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
    if not isinstance(inducing, str):
        Z = as_inducing_points(inducing, "inducing").Z.numpy()
        if Z.shape[1] != X.shape[1]:
            raise ValueError(
                f"inducing must have {X.shape[1]} columns, as X has, got shape {list(Z.shape)}."
            )
        return Z, _nearest(Z, X, Y)
    # Coinciding inducing inputs would make their covariance singular.
    _, distinct = np.unique(X, axis=0, return_index=True)
    num_inducing = min(num_inducing, len(distinct))
    if inducing == "subset":
        rows = rng.choice(distinct, num_inducing, replace=False)
        return X[rows].copy(), Y[rows].copy()
    if inducing == "kmeans":
        centres, _ = kmeans2(X[distinct], num_inducing, minit="++", seed=rng)
        return centres, _nearest(centres, X, Y)
    raise ValueError(f"inducing must be subset, kmeans or a matrix, got {inducing!r}.")


def initial_precision(likelihood: Likelihood) -> float:
    """Start pseudo-targets as precise as the observations that they are taken from.

    With Gaussian noise that is exact for a single layer with inducing points on the data. From
    e⁻⁴, the published code's start, Adam needs thousands of steps to get there, and the bound of a
    short run is far lower. Where pseudo-targets are guesses, or the noise is a function, e⁻⁴ it is.
    """
    if isinstance(likelihood, _WITH_SCALE):
        scale, variance = likelihood.scale, getattr(likelihood, "variance", None)
        if isinstance(scale, gpflow.Parameter):
            return float(np.mean(scale.numpy() ** -2))
        if isinstance(variance, gpflow.Parameter):
            return float(np.mean(1.0 / variance.numpy()))
    if isinstance(likelihood, gpflow.likelihoods.SwitchedLikelihood):
        return float(np.mean([initial_precision(each) for each in likelihood.likelihoods]))
    return float(np.exp(-4.0))


def initial_pseudo_targets(likelihood: Likelihood, observations: Array) -> Array:
    """Put observations on the scale of the latent functions, where that scale is known."""
    warp = warp_of(likelihood)
    if warp is not None:
        return warp.forward(tf.constant(observations)).numpy()
    lik = gpflow.likelihoods
    if isinstance(likelihood, lik.Gaussian | lik.StudentT):
        return observations
    if isinstance(likelihood, HeteroskedasticGaussian):
        return np.hstack([observations, np.zeros_like(observations)])
    if isinstance(likelihood, lik.Bernoulli):
        return 2.0 * observations - 1.0
    if isinstance(likelihood, lik.Softmax | lik.MultiClass):
        classes = np.arange(likelihood.latent_dim or 1)
        return 2.0 * (observations == classes) - 1.0
    if isinstance(likelihood, lik.SwitchedLikelihood):
        values, index = observations[:, :-1], observations[:, -1:]
        parts = [initial_pseudo_targets(each, values) for each in likelihood.likelihoods]
        return np.select([index == number for number in range(len(parts))], parts)
    num_functions = count_functions(likelihood, observations.shape[1])
    return np.zeros((len(observations), num_functions))


def _nearest(points: Array, X: Array, Y: Array) -> Array:
    """The observation of the row that is nearest to each point."""
    return Y[cdist(points, X).argmin(axis=1)].copy()
