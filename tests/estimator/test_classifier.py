"""The classifier: labels, probabilities, scikit-learn's tools."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from gpflow_dwp.estimator import DeepWishartClassifier

SMALL: dict[str, Any] = {
    "depth": 1,
    "num_inducing": 20,
    "num_prediction_samples": 5,
    "num_steps": 10,
    "random_state": 0,
}
X = np.random.default_rng(0).uniform(-2.0, 2.0, (40, 2)) * [1.0, 100.0]
LABELS = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.7, 0.7])]


@pytest.fixture(scope="module")
def classifier() -> DeepWishartClassifier:
    return DeepWishartClassifier(**SMALL).fit(X, LABELS)


def test_labels_and_probabilities(classifier: DeepWishartClassifier) -> None:
    probabilities = classifier.predict_proba(X)

    assert list(classifier.classes_) == ["high", "low", "middle"]
    assert classifier.score(X, LABELS) > 0.7
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(
        classifier.predict(X), classifier.classes_[probabilities.argmax(axis=1)]
    )
    np.testing.assert_allclose(classifier.predict_log_proba(X), np.log(probabilities))


def test_probabilities_are_those_of_the_model(classifier: DeepWishartClassifier) -> None:
    inputs = classifier.input_standardiser_.transform(X)
    expected, _ = classifier.model_.predict_y(inputs, seed=classifier._seed)

    np.testing.assert_array_equal(classifier.predict_proba(X), expected)
    np.testing.assert_allclose(classifier.predict_proba(X[5:9]), expected[5:9], rtol=1e-9)


def test_two_classes_have_the_exact_probabilities_of_the_mixture() -> None:
    labels = LABELS == "high"
    classifier = DeepWishartClassifier(**SMALL).fit(X, labels)
    inputs = classifier.input_standardiser_.transform(X)
    expected, _ = classifier.model_.predict_y(inputs, seed=classifier._seed)

    assert classifier.classes_.tolist() == [False, True]
    np.testing.assert_allclose(classifier.predict_proba(X)[:, 1:], expected, rtol=1e-12)


def test_a_pickle_predicts_the_same(classifier: DeepWishartClassifier) -> None:
    again = pickle.loads(pickle.dumps(classifier))

    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
    assert again.classes_.tolist() == classifier.classes_.tolist()


def test_what_is_no_classification_is_refused() -> None:
    for labels, message in (
        (np.ones(40), "y must hold two classes or more, got one class"),
        (X[:, 0], "Unknown label type"),
        (LABELS[1:], "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=message):
            DeepWishartClassifier(**SMALL).fit(X, labels)
