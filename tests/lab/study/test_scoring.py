"""Scores: the bound of all data, however it is split, and predictions in raw units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from model_reference import randomise, tiny_model, toy_data
from scipy import stats

from gpflow_dwp.data import Standardiser
from gpflow_dwp.lab.study import scoring
from gpflow_dwp.lab.study.scoring import prediction_scores, whole_data_bound
from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.random import as_seed

DATA = toy_data()


def test_bound_of_a_model_without_noise_is_exact() -> None:
    model = tiny_model(1)

    mean, error = whole_data_bound(model, DATA, num_seeds=3)

    np.testing.assert_allclose(mean, model.elbo(DATA) / 12, rtol=1e-10)
    assert error < 1e-12


def test_bound_is_the_average_over_draws() -> None:
    """Within 5 standard errors of an average over other draws."""
    model = tiny_model(2, posterior="GW")
    elbo = tf.function(lambda seed: model.elbo(DATA, seed=seed), autograph=False)
    others = np.array([elbo(as_seed(seed)) / 12 for seed in range(200)])

    mean, error = whole_data_bound(model, DATA, num_seeds=100)

    expected_error = others.std(ddof=1) / 10.0
    np.testing.assert_allclose(error, expected_error, rtol=0.4)
    assert abs(mean - others.mean()) < 5.0 * np.hypot(error, expected_error / np.sqrt(2.0))


def test_blocks_of_rows_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model(1)
    expected, _ = whole_data_bound(model, DATA, num_seeds=1)
    monkeypatch.setattr(scoring, "_BLOCK", 5)

    mean, _ = whole_data_bound(model, DATA, num_seeds=2)

    np.testing.assert_allclose(mean, expected, rtol=1e-10)


@pytest.mark.parametrize(("block", "expected"), [(12, 100), (6, 50), (1, 10)])
def test_number_of_draws(block: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(scoring, "_BLOCK", block)
    monkeypatch.setattr(scoring, "fold_in", lambda seed, number: seen.append(number) or seed)

    whole_data_bound(tiny_model(1), DATA)

    assert seen[0] == -1 and set(seen[1:]) == set(range(expected))


def test_prediction_scores_are_in_raw_units() -> None:
    model = tiny_model(1)
    X, Y = DATA
    target = Standardiser(np.array([100.0]), np.array([20.0]))
    plain = Standardiser(np.array([0.0]), np.array([1.0]))

    scores = prediction_scores(model, X, target.inverse_transform(Y), target, num_samples=7)
    standardised = prediction_scores(model, X, Y, plain, num_samples=7)

    for name in ("rmse", "crps"):
        np.testing.assert_allclose(scores[name], 20.0 * standardised[name], rtol=1e-6)
    offset = -np.log(20.0)
    expected = standardised["test_log_likelihood"] + offset
    np.testing.assert_allclose(scores["test_log_likelihood"], expected, rtol=1e-9)
    for level in (50, 90, 95):
        assert scores[f"coverage_{level}"] == standardised[f"coverage_{level}"]


def test_prediction_scores_against_the_mixture_itself() -> None:
    model = tiny_model(1)
    X, Y = DATA
    plain = Standardiser(np.array([0.0]), np.array([1.0]))

    scores = prediction_scores(model, X, Y, plain, num_samples=4)

    mean, variance = (part.numpy()[:, 0] for part in model.predict_y(X, num_samples=4))
    z = (Y[:, 0] - mean) / np.sqrt(variance)  # without hidden layers the mixture is one Gaussian
    density = -0.5 * (z**2 + np.log(2.0 * np.pi * variance))
    np.testing.assert_allclose(scores["test_log_likelihood"], density.mean(), rtol=1e-8)
    np.testing.assert_allclose(scores["rmse"], np.sqrt(np.mean((Y[:, 0] - mean) ** 2)), rtol=1e-10)
    for level, quantile in ((50, 0.674490), (90, 1.644854), (95, 1.959964)):
        assert scores[f"coverage_{level}"] == np.mean(np.abs(z) <= quantile)


def test_scores_of_a_warped_model_are_those_of_targets() -> None:
    """Catches scores of warped targets, and marginals that are drawn of them."""
    model = tiny_model(1, warp=True)
    model.likelihood.variance.assign(0.5)
    model.likelihood.warp.shift.assign([0.5])
    model.likelihood.warp.skewness.assign([0.6])
    X, Y = DATA
    target = Standardiser(np.array([100.0]), np.array([20.0]))

    scores = prediction_scores(
        model, X, target.inverse_transform(Y), target, num_samples=2_000, marginals=True
    )

    exact = float(np.mean(model.predict_log_density(DATA, num_samples=1)))
    np.testing.assert_allclose(scores["test_log_likelihood"], exact - np.log(20.0), rtol=1e-8)
    np.testing.assert_allclose(scores["log_likelihood_standardised"], exact, rtol=1e-8)
    assert abs(scores["log_likelihood_kernel"] - exact) < 0.3
    mean, _ = model.predict_y(X, num_samples=1)
    np.testing.assert_allclose(scores["rmse"], 20.0 * np.sqrt(np.mean((Y - mean) ** 2)))
    samples = model.predict_y_samples(X, 4_000, seed=1).numpy()[..., 0]
    error = np.abs(samples - Y[:, 0]).mean(axis=0)
    spread = 0.5 * np.abs(samples[:2_000] - samples[2_000:]).mean(axis=0)
    np.testing.assert_allclose(scores["crps"], 20.0 * np.mean(error - spread), rtol=0.03)


def test_scores_of_marginals_are_in_standardised_units() -> None:
    model = build_latent_variable_deep_gp(DATA, "LV-GP", num_inducing=5)
    randomise(model, seed=2)
    X, Y = DATA
    target = Standardiser(np.array([100.0]), np.array([20.0]))

    scores = prediction_scores(
        model, X, target.inverse_transform(Y), target, num_samples=2_000, marginals=True
    )

    posterior = model.posterior(2_000, seed=0)
    exact = posterior.predict_log_density(DATA).numpy()
    samples = posterior.sample_y(X).numpy()[..., 0]
    np.testing.assert_allclose(scores["log_likelihood_standardised"], exact.mean(), rtol=1e-8)
    kernel = [
        stats.gaussian_kde(column, "silverman").logpdf(y)[0]
        for y, column in zip(Y[:, 0], samples.T, strict=True)
    ]
    # Other draws of y: an estimate of a density has a relative error of a few percent.
    assert abs(scores["log_likelihood_kernel"] - np.mean(kernel)) < 0.1
    assert abs(scores["log_likelihood_kernel"] - exact.mean()) < 0.3
    statistics = [stats.shapiro(column).statistic for column in samples.T]
    np.testing.assert_allclose(scores["shapiro_wilk"], np.median(statistics), atol=0.02)


def test_crps_takes_some_of_many_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model(2)
    plain = Standardiser(np.array([0.0]), np.array([1.0]))
    few = prediction_scores(model, *DATA, plain, num_samples=4)
    monkeypatch.setattr(scoring, "_LARGEST_MIXTURE", 2)

    fewer = prediction_scores(model, *DATA, plain, num_samples=4)

    assert few["test_log_likelihood"] == fewer["test_log_likelihood"]
    assert few["rmse"] == fewer["rmse"]
    assert few["crps"] != fewer["crps"]
