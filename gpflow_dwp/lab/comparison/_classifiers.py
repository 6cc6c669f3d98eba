"""Rivals in classification. Each takes X [N, D], class indices y [N] and a seed.

What it returns takes inputs to probabilities [N, C], in the order of the indices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import train_sparse_classifier
from gpflow_dwp.lab.comparison._regressors import kmeans_centres
from gpflow_dwp.likelihoods import likelihood_of_labels
from gpflow_dwp.optional import import_optional

__all__ = ["fit_hist_gb", "fit_logistic", "fit_random_forest", "fit_svc", "fit_svgp"]

Predict = Callable[[Array], Array]


def fit_logistic(X: Array, y: Array, seed: int) -> Predict:
    """Fit scikit-learn's LogisticRegression; more iterations than its default, to converge."""
    linear_model = import_optional("sklearn.linear_model", "cli")
    return _fit(linear_model.LogisticRegression(max_iter=1_000), X, y, Standardiser.fit(X))


def fit_hist_gb(X: Array, y: Array, seed: int) -> Predict:
    """Fit scikit-learn's HistGradientBoostingClassifier."""
    ensemble = import_optional("sklearn.ensemble", "cli")
    return _fit(ensemble.HistGradientBoostingClassifier(random_state=seed), X, y)


def fit_random_forest(X: Array, y: Array, seed: int) -> Predict:
    """Fit scikit-learn's RandomForestClassifier."""
    ensemble = import_optional("sklearn.ensemble", "cli")
    return _fit(ensemble.RandomForestClassifier(random_state=seed), X, y)


def fit_svc(X: Array, y: Array, seed: int) -> Predict:
    """Fit scikit-learn's SVC, calibrated as its documentation says in place of ``probability``."""
    svm, calibration = (
        import_optional(f"sklearn.{name}", "cli") for name in ("svm", "calibration")
    )
    model = calibration.CalibratedClassifierCV(svm.SVC(random_state=seed), ensemble=False)
    return _fit(model, X, y, Standardiser.fit(X))


def fit_svgp(X: Array, y: Array, seed: int) -> Predict:
    """Fit GPflow's SVGP: Bernoulli for two classes, softmax for more."""
    inputs, num_classes = Standardiser.fit(X), int(y.max()) + 1
    scaled = inputs.transform(X)
    centres = kmeans_centres(scaled, np.random.default_rng(seed))
    likelihood = likelihood_of_labels(num_classes)
    model, _ = train_sparse_classifier((scaled, y[:, None]), centres, likelihood, seed=seed)

    def predict(X: Array) -> Array:
        mean = np.asarray(model.predict_y(inputs.transform(X))[0], np.float64)
        return np.hstack([1.0 - mean, mean]) if num_classes == 2 else mean

    return predict


def _fit(model: Any, X: Array, y: Array, inputs: Standardiser | None = None) -> Predict:
    def scaled(X: Array) -> Array:
        return X if inputs is None else inputs.transform(X)

    model.fit(scaled(X), y)
    return lambda X: np.asarray(model.predict_proba(scaled(X)), np.float64)
