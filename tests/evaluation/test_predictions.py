"""Predictions of rows, and how well they do."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats
from sklearn.metrics import r2_score

from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.evaluation.predictions import (
    INTERVAL,
    LabelPredictions,
    NumberPredictions,
    Scores,
    expected_calibration_error,
    judge,
    predict,
)
from gpflow_dwp.likelihoods.named import likelihood_of_labels
from gpflow_dwp.models import build_deep_wishart_process

INPUTS, TARGET = Standardiser([1.0, -3.0], [2.0, 0.5]), Standardiser([100.0], [20.0])
X = INPUTS.inverse_transform(np.random.default_rng(0).normal(size=[7, 2]))
Y = 100.0 + 20.0 * np.random.default_rng(1).normal(size=[7, 1])
LABELS = np.array([0.0, 1.0, 2.0, 1.0, 0.0, 1.0, 0.0])[:, None]


@pytest.fixture(scope="module")
def units() -> RawUnits:
    """Of numbers."""
    data = INPUTS.transform(X), TARGET.transform(Y)
    return RawUnits(build_deep_wishart_process(data, 2, num_inducing=5), INPUTS, TARGET)


def test_numbers_are_predicted_and_judged_as_the_mixture_says(units: RawUnits) -> None:
    posterior = units.model.posterior(4, seed=3)
    components = posterior.predict_warped_components(INPUTS.transform(X))
    means, variances = (part.numpy()[..., 0] for part in components)
    means, variances = 100.0 + 20.0 * means, 400.0 * variances

    got, scores, calibration = judge(units, X, Y, num_samples=4, seed=3, elbo=-7.0, seconds=2.0)

    assert isinstance(got, NumberPredictions)
    mean = means.mean(axis=0)
    np.testing.assert_allclose(got.mean, mean)
    second_moment = (variances + means**2).mean(axis=0)
    np.testing.assert_allclose(got.deviation, np.sqrt(second_moment - mean**2))

    def below(y: np.ndarray) -> np.ndarray:
        return stats.norm.cdf(y, means, np.sqrt(variances)).mean(axis=0)

    np.testing.assert_allclose(below(got.lower), 0.5 - 0.5 * INTERVAL, atol=1e-9)
    np.testing.assert_allclose(below(got.upper), 0.5 + 0.5 * INTERVAL, atol=1e-9)
    np.testing.assert_allclose(got.below, below(Y[:, 0]))
    densities = stats.norm.logpdf(Y[:, 0], means, np.sqrt(variances))
    assert scores.log_likelihood == pytest.approx(
        np.mean(special.logsumexp(densities, axis=0) - np.log(4))
    )
    assert scores.error == pytest.approx(np.sqrt(np.mean((mean - Y[:, 0]) ** 2)))
    assert scores.r2 == pytest.approx(r2_score(Y[:, 0], mean))
    assert scores.crps is not None and 0.0 < scores.crps < scores.error
    assert (scores.elbo, scores.seconds, scores.ece) == (-7.0, 2.0, None)
    inside = (got.lower <= Y[:, 0]) & (Y[:, 0] <= got.upper)
    assert calibration == {"coverage_of_95%_intervals": inside.mean()}


def test_blocks_and_targets_make_no_difference(
    units: RawUnits, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = judge(units, X, Y, num_samples=4, seed=3)
    monkeypatch.setattr("gpflow_dwp.evaluation.raw_units._BLOCK", 3)
    parts = judge(units, X, Y, num_samples=4, seed=3)
    alone = predict(units, X, num_samples=4, seed=3)
    for name in ("mean", "deviation", "lower", "upper", "below"):
        expected = getattr(whole.predictions, name)
        np.testing.assert_allclose(getattr(parts.predictions, name), expected, rtol=1e-9)
        if name != "below":
            np.testing.assert_allclose(getattr(alone, name), expected, rtol=1e-9)
    assert isinstance(alone, NumberPredictions) and alone.below is None
    assert parts.scores == pytest.approx(whole.scores)


@pytest.mark.parametrize("classes", [2, 3])
def test_labels_are_predicted_and_judged(classes: int) -> None:
    data = INPUTS.transform(X), np.minimum(LABELS, classes - 1.0)
    own = {"num_inducing": 5, "likelihood": likelihood_of_labels(classes)}
    units, truth = RawUnits(build_deep_wishart_process(data, 2, **own), INPUTS), data[1]

    got, scores, calibration = judge(units, X, truth, num_samples=4, seed=3)
    tf.random.set_seed(7)  # whatever was drawn before
    again = predict(units, X, num_samples=4, seed=3)

    assert isinstance(got, LabelPredictions) and isinstance(again, LabelPredictions)
    np.testing.assert_array_equal(got.probabilities, again.probabilities)
    assert got.probabilities.shape == (7, classes)
    np.testing.assert_allclose(got.probabilities.sum(axis=1), 1.0)
    chosen = got.probabilities[np.arange(7), truth[:, 0].astype(int)]
    # The softmax has no closed form: other random numbers estimate its density.
    assert scores.log_likelihood == pytest.approx(np.log(chosen).mean(), abs=0.05)
    assert scores.error == np.mean(got.probabilities.argmax(axis=1) != truth[:, 0])
    assert scores.ece == expected_calibration_error(got.probabilities, truth[:, 0])
    assert (scores.elbo, scores.crps, scores.r2) == (None, None, None)
    assert calibration == {"mean_confidence": pytest.approx(got.probabilities.max(axis=1).mean())}


def test_equal_targets_have_no_share_that_is_explained() -> None:
    known = {"log_likelihood": -1.0, "seconds": 2.0, "elbo": -3.0}
    for equal in (1.0, 0.1):  # of which rounding makes a variance of 2e-34
        assert np.isnan(Scores.of_numbers(np.full(3, equal), np.zeros(3), **known).r2)


def test_calibration_error_is_that_of_a_loop() -> None:
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet([1.0, 0.5, 0.2], size=300)
    probabilities[0] = [1.0, 0.0, 0.0]  # the edge of the last bin
    labels = rng.integers(0, 3, 300)
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    bins = np.minimum((confidence * 15).astype(int), 14)
    expected = sum(
        np.mean(bins == number) * abs(confidence[bins == number].mean() - share.mean())
        for number in range(15)
        if len(share := right[bins == number])
    )
    assert expected_calibration_error(probabilities, labels) == pytest.approx(expected)
