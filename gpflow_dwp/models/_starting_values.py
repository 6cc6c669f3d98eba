"""Where a model's parameters start, as far as that follows from the data."""

from __future__ import annotations

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from gpflow_dwp.likelihoods import warp_function
from gpflow_dwp.models.accepted_observations import count_functions

__all__ = ["initial_inducing", "initial_precision", "initial_pseudo_targets"]


def initial_inducing(
    X: npt.NDArray[np.float64],
    Y: npt.NDArray[np.float64],
    num_inducing: int,
    inducing: str,
    rng: np.random.Generator,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Choose inducing inputs, [M, D], and observations for them, [M, P]."""
    # Coinciding inducing inputs would make their covariance singular.
    _, distinct = np.unique(X, axis=0, return_index=True)
    num_inducing = min(num_inducing, len(distinct))
    if inducing == "subset":
        rows = rng.choice(distinct, num_inducing, replace=False)
        return X[rows].copy(), Y[rows].copy()
    if inducing == "kmeans":
        centres, _ = kmeans2(X[distinct], num_inducing, minit="++", seed=rng)
        return centres, Y[cdist(centres, X).argmin(axis=1)].copy()
    raise ValueError(f"inducing must be subset or kmeans, got {inducing!r}.")


def initial_precision(likelihood: Likelihood) -> float:
    """Start pseudo-targets as precise as the observations that they are taken from.

    With Gaussian noise that is exact for a single layer with inducing points on the data. From
    e⁻⁴, the published code's start, Adam needs thousands of steps to get there, and the bound of a
    short run is far lower. Where pseudo-targets are guesses, or the noise is a function, e⁻⁴ it is.
    """
    if isinstance(likelihood, gpflow.likelihoods.Gaussian | gpflow.likelihoods.StudentT):
        scale, variance = likelihood.scale, getattr(likelihood, "variance", None)
        if isinstance(scale, gpflow.Parameter):
            return float(np.mean(scale.numpy() ** -2))
        if isinstance(variance, gpflow.Parameter):
            return float(np.mean(1.0 / variance.numpy()))
    return float(np.exp(-4.0))


def initial_pseudo_targets(
    likelihood: Likelihood, observations: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Put observations on the scale of the latent functions, where that scale is known."""
    warp = warp_function(likelihood)
    if warp is not None:
        return warp(tf.constant(observations)).numpy()
    lik = gpflow.likelihoods
    if isinstance(likelihood, lik.Gaussian | lik.StudentT):
        return observations
    if isinstance(likelihood, lik.Bernoulli):
        return 2.0 * observations - 1.0
    if isinstance(likelihood, lik.Softmax | lik.MultiClass):
        classes = np.arange(likelihood.latent_dim or 1)
        return 2.0 * (observations == classes) - 1.0
    num_functions = count_functions(likelihood, observations.shape[1])
    return np.zeros((len(observations), num_functions))
