"""Scores: the bound of all data, however it is split, and predictions in raw units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from model_reference import tiny_model, toy_data

from gpflow_dwp.data import Standardiser
from gpflow_dwp.random import as_seed
from gpflow_dwp.study import prediction_scores, scoring, whole_data_bound

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
