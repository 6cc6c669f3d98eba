"""The classifier: labels, probabilities, scikit-learn's tools."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from gpflow_dwp.estimator import DeepWishartClassifier
from gpflow_dwp.training import EarlyStopping

pytestmark = pytest.mark.usefixtures("eager", "untraced")

SMALL: dict[str, Any] = {
    "depth": 1,
    "num_inducing": 20,
    "num_prediction_samples": 5,
    "num_steps": 10,
    "random_state": 0,
}
X = np.random.default_rng(0).uniform(-2.0, 2.0, (40, 2)) * [1.0, 100.0]
LABELS = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.7, 0.7])]


def test_labels_and_probabilities() -> None:
    classifier = DeepWishartClassifier(**SMALL).fit(X, LABELS)
    probabilities = classifier.predict_proba(X)
    assert list(classifier.classes_) == ["high", "low", "middle"]
    assert classifier.score(X, LABELS) > 0.6
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    chosen = classifier.classes_[probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(classifier.predict(X), chosen)
    np.testing.assert_allclose(classifier.predict_log_proba(X), np.log(probabilities))
    inputs = classifier.input_standardiser_.transform(X)
    expected, _ = classifier.model_.predict_y(inputs, seed=classifier._seed)
    np.testing.assert_array_equal(probabilities, expected)
    np.testing.assert_allclose(classifier.predict_proba(X[5:9]), expected[5:9], rtol=1e-9)


def test_two_classes_have_the_exact_probabilities_of_the_mixture() -> None:
    labels = LABELS == "high"
    classifier = DeepWishartClassifier(**{**SMALL, "num_steps": 2}).fit(X, labels)
    inputs = classifier.input_standardiser_.transform(X)
    expected, _ = classifier.model_.predict_y(inputs, seed=classifier._seed)

    assert classifier.classes_.tolist() == [False, True]
    np.testing.assert_allclose(classifier.predict_proba(X)[:, 1:], expected, rtol=1e-12)
    with pytest.raises(ValueError, match="y must hold two classes or more, got one class"):
        classifier.fit(X, np.ones(40))


def test_early_stopping_holds_out_rows_of_each_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches rows that are both learned from and judged, and a rare class that is left out."""
    made = Mock(side_effect=EarlyStopping)
    monkeypatch.setattr("gpflow_dwp.training.early_stopping.EarlyStopping", made)
    labels = np.where(np.arange(40) < 4, "rare", LABELS)
    settings = {**SMALL, "num_steps": 4, "num_inducing": 5, "early_stopping": True}
    classifier = DeepWishartClassifier(**{**settings, "validation_fraction": 0.3}).fit(X, labels)

    inputs, indices = made.call_args.args[0]
    assert classifier.model_.num_data == 28 and len(inputs) == 12
    assert set(classifier.classes_[indices[:, 0].astype(int)]) == set(labels)
    held_out = classifier.input_standardiser_.inverse_transform(inputs)
    learned = [row for row in X if not np.isclose(held_out, row).all(axis=1).any()]
    np.testing.assert_allclose(np.mean(learned, axis=0), classifier.input_standardiser_.mean)
    labels[1:4] = "low"
    with pytest.raises(ValueError, match="validation_fraction=0.3 of 40 rows .* only 1 member"):
        classifier.fit(X, labels)
    labels[1] = "rare"
    with pytest.raises(ValueError, match=r"validation_fraction=0.9 leaves no rows of a class"):
        classifier.set_params(validation_fraction=0.9).fit(X, labels)


def test_warm_start_knows_the_first_labels_only() -> None:
    """Catches labels that are numbered anew: a second fit may lack some, and brings no new ones."""
    classifier = DeepWishartClassifier(**{**SMALL, "num_steps": 2}, warm_start=True).fit(X, LABELS)

    classifier.fit(X[LABELS != "high"], LABELS[LABELS != "high"])

    assert list(classifier.classes_) == ["high", "low", "middle"]
    assert classifier.predict_proba(X).shape == (40, 3)
    with pytest.raises(ValueError, match="labels of the first fit to go on, .* got .*'other'"):
        classifier.fit(X, np.where(LABELS == "high", "other", LABELS))
