"""The models that are compared, each as its user gets it: defaults, nothing tuned by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.lab.comparison import _classifiers, _regressors
from gpflow_dwp.lab.comparison.predictions import EstimatorPrediction, Prediction
from gpflow_dwp.optional import import_optional
from gpflow_dwp.validation import check_choice

__all__ = ["MODELS", "ComparedModel", "estimator_class"]

Fit = Callable[..., Callable[[Array], Any]]


class ComparedModel(NamedTuple):
    """How a model is fitted.

    :param fits: By task, a function of training inputs [N, D] in raw units, targets or class
        indices [N] and a seed. What it returns takes inputs to a :class:`Prediction`, or for
        classification to probabilities [N, C].
    :param modules: What has to be installed: modules, and the extras that bring them.
    """

    fits: Mapping[str, Fit]
    modules: tuple[tuple[str, str], ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that it takes."""
        return tuple(self.fits)

    def load(self) -> None:
        """Import what it needs.

        :raises ImportError: If that is not installed; the message says how to install it.
        """
        for module, extra in self.modules:
            import_optional(module, extra)


def estimator_class(task: str) -> Any:
    """Return our estimator for a task.

    :param task: "regression" or "classification".
    :raises ImportError: If scikit-learn is not installed.
    """
    check_choice(("regression", "classification"), task=task)
    estimator = import_optional("gpflow_dwp.estimator", "sklearn")
    name = "DeepWishartRegressor" if task == "regression" else "DeepWishartClassifier"
    return getattr(estimator, name)


def _fit_own_regressor(
    X: Array, y: Array, seed: int, **settings: Any
) -> Callable[[Array], Prediction]:
    settings = {"random_state": seed, **settings}
    estimator = estimator_class("regression")(**settings).fit(X, y)
    return lambda inputs: EstimatorPrediction(estimator, inputs)


def _fit_own_classifier(X: Array, y: Array, seed: int, **settings: Any) -> Callable[[Array], Array]:
    settings = {"random_state": seed, **settings}
    estimator = estimator_class("classification")(**settings).fit(X, y)
    return lambda inputs: np.asarray(estimator.predict_proba(inputs), np.float64)


_SKLEARN = "cli"

MODELS: Mapping[str, ComparedModel] = MappingProxyType(
    {
        "exact-gp": ComparedModel({"regression": _regressors.fit_gp}),
        "bayesian-ridge": ComparedModel(
            {"regression": _regressors.fit_bayesian_ridge}, (("sklearn.linear_model", _SKLEARN),)
        ),
        "logistic": ComparedModel(
            {"classification": _classifiers.fit_logistic}, (("sklearn.linear_model", _SKLEARN),)
        ),
        "hist-gb": ComparedModel(
            {
                "regression": _regressors.fit_hist_gb,
                "classification": _classifiers.fit_hist_gb,
            },
            (("sklearn.ensemble", _SKLEARN), ("sklearn.model_selection", _SKLEARN)),
        ),
        "random-forest": ComparedModel(
            {
                "regression": _regressors.fit_random_forest,
                "classification": _classifiers.fit_random_forest,
            },
            (("sklearn.ensemble", _SKLEARN),),
        ),
        "ngboost": ComparedModel({"regression": _regressors.fit_ngboost}, (("ngboost", "rivals"),)),
        "svc": ComparedModel(
            {"classification": _classifiers.fit_svc},
            (("sklearn.svm", _SKLEARN), ("sklearn.calibration", _SKLEARN)),
        ),
        "svgp": ComparedModel({"classification": _classifiers.fit_svgp}),
        "dwp": ComparedModel(
            {"regression": _fit_own_regressor, "classification": _fit_own_classifier},
            (("sklearn", "sklearn"), ("gpflow_dwp.estimator", "sklearn")),
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
regression, ``hist-gb``, ``random-forest``, ``svc``, a support vector machine that is calibrated by
cross-validation, and ``svgp``, GPflow's SVGP with 100 inducing inputs, by Adam. For both ``dwp``,
:class:`~gpflow_dwp.estimator.DeepWishartRegressor` or
:class:`~gpflow_dwp.estimator.DeepWishartClassifier`. Where nothing is said settings are those of
the packages; inputs are standardised for all but trees.
"""
