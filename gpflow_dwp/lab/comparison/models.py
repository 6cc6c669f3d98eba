"""The models that are compared, each as its user gets it: defaults, nothing tuned by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation.sklearn_models import (
    Fit,
    classifier,
    fit_boosting,
    fit_boosting_classifier,
)
from gpflow_dwp.lab.comparison import rivals
from gpflow_dwp.lab.comparison.scores import EstimatorPrediction
from gpflow_dwp.optional import import_optional
from gpflow_dwp.validation import check_choice

__all__ = ["COMPARED_MODELS", "ComparedModel", "estimator_class"]


class ComparedModel(NamedTuple):
    """How a model is fitted.

    :param fits: By task, a function of training inputs [N, D] in raw units, targets or class
        indices [N] and a seed. What it returns takes inputs to a prediction, or for classification
        to probabilities [N, C].
    :param modules: What has to be installed.
    :param extra: Of this package, which brings that.
    """

    fits: Mapping[str, Fit]
    modules: tuple[str, ...] = ()
    extra: str = "cli"

    def load(self) -> None:
        """Import what it needs.

        :raises ImportError: If that is not installed; the message says how to install it.
        """
        for module in self.modules:
            import_optional(module, self.extra)


def estimator_class(task: str) -> Any:
    """Return our estimator for a task.

    :raises ImportError: If scikit-learn is not installed.
    """
    check_choice(("regression", "classification"), task=task)
    estimator = import_optional("gpflow_dwp.estimator", "sklearn")
    name = "DeepWishartRegressor" if task == "regression" else "DeepWishartClassifier"
    return getattr(estimator, name)


def _fit_own(task: str) -> Fit:
    def fit(X: Array, y: Array, seed: int, **settings: Any) -> Callable[[Array], Any]:
        model = estimator_class(task)(**{"random_state": seed, **settings}).fit(X, y)
        if task == "regression":
            return lambda inputs: EstimatorPrediction(model, inputs)
        return lambda inputs: np.asarray(model.predict_proba(inputs), np.float64)

    return fit


_LOGISTIC = classifier("linear_model.LogisticRegression", is_scaled=True, max_iter=1_000)
_FOREST = classifier("ensemble.RandomForestClassifier", random_state=None)

COMPARED_MODELS: Mapping[str, ComparedModel] = MappingProxyType(
    {
        "exact-gp": ComparedModel({"regression": rivals.fit_gp}),
        "bayesian-ridge": ComparedModel(
            {"regression": rivals.fit_bayesian_ridge}, ("sklearn.linear_model",)
        ),
        "logistic": ComparedModel({"classification": _LOGISTIC}, ("sklearn.linear_model",)),
        "hist-gb": ComparedModel(
            {"regression": fit_boosting, "classification": fit_boosting_classifier},
            ("sklearn.ensemble", "sklearn.model_selection"),
        ),
        "random-forest": ComparedModel(
            {"regression": rivals.fit_forest, "classification": _FOREST}, ("sklearn.ensemble",)
        ),
        "ngboost": ComparedModel({"regression": rivals.fit_ngboost}, ("ngboost",), "rivals"),
        "svc": ComparedModel(
            {"classification": rivals.fit_svc}, ("sklearn.svm", "sklearn.calibration")
        ),
        "svgp": ComparedModel({"classification": rivals.fit_svgp}),
        "dwp": ComparedModel(
            {task: _fit_own(task) for task in ("regression", "classification")},
            ("sklearn", "gpflow_dwp.estimator"),
            "sklearn",
        ),
    }
)
"""The models, in the order of reports; read-only.

For regression: ``exact-gp``, GPflow's GP with a squared exponential kernel and a lengthscale for
each input, by L-BFGS from three random starts, of which the one of the largest marginal likelihood
is kept (above 2,000 rows GPflow's SGPR with 100 inducing inputs that start on k-means centres);
``bayesian-ridge``; ``hist-gb``, scikit-learn's gradient boosting of histograms, normal with the
standard deviation of out-of-fold residuals, five folds; ``random-forest``, normal with that of
out-of-bag residuals; and ``ngboost``, with its own normal. For classification: ``logistic``
regression with at most 1,000 iterations, to converge, ``hist-gb``, ``random-forest``, ``svc``, a
support vector machine that is calibrated by cross-validation, and ``svgp``, GPflow's SVGP with 100
inducing inputs, by Adam. For both ``dwp``, :class:`~gpflow_dwp.estimator.DeepWishartRegressor` or
:class:`~gpflow_dwp.estimator.DeepWishartClassifier`. Where nothing is said settings are those of
the packages; inputs are standardised for all but trees.
"""
