"""Draws of observations: from each likelihood, and from each model's predictive distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import model_reference
import numpy as np
import pytest
import tensorflow as tf
from gpflow import likelihoods
from model_reference import tiny_model, toy_data
from scipy import stats

from gpflow_dwp.likelihoods import GammaGaussian
from gpflow_dwp.likelihoods.observed import sample_observations
from gpflow_dwp.random import as_seed

S = 20_000
K_SIGMA = 5.0
SEED = as_seed(0)
X = np.array([[0.5], [1.0], [2.0]])
F = np.array([[-0.4], [0.1], [0.9]])


def noise_of_x() -> likelihoods.Gaussian:
    return likelihoods.Gaussian(gpflow.functions.Linear(np.ones((1, 1)), 0.5))


CONTINUOUS: dict[str, tuple[Callable[[], Any], Callable[[float, float], Any]]] = {
    "gaussian": (lambda: likelihoods.Gaussian(0.3), lambda x, f: stats.norm(f, np.sqrt(0.3))),
    "gaussian_by_scale": (lambda: likelihoods.Gaussian(scale=0.3), lambda x, f: stats.norm(f, 0.3)),
    "gaussian_of_x": (noise_of_x, lambda x, f: stats.norm(f, np.sqrt(x + 0.5))),
    "gamma_gaussian": (
        lambda: GammaGaussian(3.0, 4.0),
        lambda x, f: stats.t(6.0, loc=f, scale=np.sqrt(4.0 / 3.0)),
    ),
    "student_t": (
        lambda: likelihoods.StudentT(0.7, df=2.0),
        lambda x, f: stats.t(2.0, loc=f, scale=0.7),
    ),
}


def draw(likelihood: Any, functions: np.ndarray, num_draws: int = S) -> np.ndarray:
    repeated = tf.constant(np.tile(functions, [num_draws, 1, 1]))
    return sample_observations(likelihood, tf.constant(X), repeated, SEED).numpy()


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_observations_have_the_distribution_of_scipy(name: str) -> None:
    make, reference = CONTINUOUS[name]

    samples = draw(make(), F)

    assert samples.shape == (S, 3, 1)
    for n in range(3):
        test = stats.kstest(samples[:, n, 0], reference(X[n, 0], F[n, 0]).cdf)
        assert test.pvalue > 1e-4  # about 4 sigma
    correlations = np.corrcoef(samples[..., 0].argsort(axis=0).argsort(axis=0), rowvar=False)
    assert np.abs(correlations[np.triu_indices(3, 1)]).max() < K_SIGMA / np.sqrt(S)


LOGITS = np.array([[0.3, -0.2, 1.0], [2.0, 0.0, 0.0], [-1.0, 0.5, 0.4]])


@pytest.mark.parametrize(
    "likelihood",
    [
        likelihoods.Bernoulli(),
        likelihoods.Poisson(binsize=2.0),
        likelihoods.Softmax(3),
        likelihoods.MultiClass(3),
    ],
    ids=lambda likelihood: type(likelihood).__name__,
)
def test_discrete_observations_have_their_probabilities(likelihood: Any) -> None:
    functions = LOGITS if likelihood.latent_dim == 3 else F
    if isinstance(likelihood, likelihoods.MultiClass):
        likelihood.invlink.epsilon.assign(0.3)
    probabilities = likelihood.conditional_mean(X, functions).numpy()
    if isinstance(likelihood, likelihoods.Bernoulli):
        probabilities = np.concatenate([1.0 - probabilities, probabilities], axis=1)
    if isinstance(likelihood, likelihoods.Poisson):
        probabilities = stats.poisson(2.0 * np.exp(F)).pmf(np.arange(8))

    samples = draw(likelihood, functions)

    assert samples.shape == (S, 3, 1)
    labels = np.arange(probabilities.shape[1])
    shares = np.mean(samples == labels, axis=0)
    errors = np.sqrt(probabilities * (1.0 - probabilities) / S)
    assert np.all(np.abs(shares - probabilities) < K_SIGMA * errors + 1e-12)


class InflatedPoisson(likelihoods.Poisson):
    """Has another density than the class that it inherits from."""


class OwnDraws(InflatedPoisson):
    def sample_observations(self, X: tf.Tensor, F: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        return tf.zeros_like(F)


def test_a_likelihood_that_cannot_be_drawn_from_is_named() -> None:
    for likelihood in (likelihoods.Exponential(), InflatedPoisson()):
        name = type(likelihood).__name__
        with pytest.raises(NotImplementedError, match=f"of the likelihood {name} cannot"):
            draw(likelihood, F, num_draws=2)
    assert not draw(OwnDraws(), F, num_draws=2).any()


DATA = toy_data()
XNEW = DATA[0][:4] + 0.1


def test_observations_have_the_predicted_moments() -> None:
    model = tiny_model(2, data=DATA, likelihood=likelihoods.Gaussian(0.3))
    mean, variance = (part.numpy() for part in model.predict_y(XNEW, num_samples=3_000))

    samples = model.predict_y_samples(XNEW, 3_000, seed=1).numpy()

    # 5 sigma; predictions have a Monte Carlo error of their own, at most that of the samples.
    k_sigma = 5.0 * np.sqrt(2.0)
    assert samples.shape == (3_000, 4, 1)
    model_reference.assert_same_mean(samples, mean, k_sigma)
    model_reference.assert_same_mean((samples - mean) ** 2, variance, k_sigma)
