"""Models of scikit-learn that predict distributions: boosting, and classifiers.

Each takes X [N, D], y [N] and a seed. What it returns takes inputs to a normal distribution of each
row, or for classification to probabilities [N, C] in the order of the class indices.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation.normal_prediction import NormalPrediction
from gpflow_dwp.optional import import_optional

__all__ = [
    "Fit",
    "classifier",
    "fit_boosting",
    "fit_boosting_classifier",
    "fit_probabilities",
    "sklearn_class",
]

Fit = Callable[..., Callable[[Array], Any]]

_MOST_FOLDS = 5

# Below, boosting's threads wait for each other longer than they work: on two cores that are busy
# with something else, 72 to 5,000 rows take 11 to 15 times as long as by one thread.
_ROWS_FOR_THREADS = 10_000


def fit_boosting(X: Array, y: Array, seed: int) -> Callable[[Array], NormalPrediction]:
    """Fit scikit-learn's HistGradientBoostingRegressor; its residuals are those of five folds.

    Fewer rows have a fold each.

    :raises ValueError: If there is one row only.
    """
    if len(X) < 2:
        raise ValueError(f"X must hold two rows or more for folds of them, got {len(X)}.")
    model = sklearn_class("ensemble.HistGradientBoostingRegressor")(random_state=seed)
    num_folds = min(_MOST_FOLDS, len(X))
    folds = sklearn_class("model_selection.KFold")(num_folds, shuffle=True, random_state=seed)
    with _threads_for(X):
        held_out = sklearn_class("model_selection.cross_val_predict")(model, X, y, cv=folds)
        model.fit(X, y)
    deviation = np.sqrt(np.mean(np.square(y - held_out)))
    return lambda X: NormalPrediction(model.predict(X), deviation)


def classifier(path: str, *, is_scaled: bool = False, **settings: Any) -> Fit:
    """Return what fits a classifier of scikit-learn.

    :param path: Module and class, such as "ensemble.RandomForestClassifier".
    :param is_scaled: Whether inputs are standardised.
    :param settings: Arguments of the class; a ``random_state`` of None is the seed.
    """

    def fit(X: Array, y: Array, seed: int) -> Callable[[Array], Array]:
        own = {name: seed if name == "random_state" else value for name, value in settings.items()}
        return fit_probabilities(sklearn_class(path)(**own), X, y, is_scaled=is_scaled)

    return fit


def fit_boosting_classifier(X: Array, y: Array, seed: int) -> Callable[[Array], Array]:
    """Fit scikit-learn's HistGradientBoostingClassifier.

    Of many rows it holds out some of each class, to stop early; not where a class has one only.
    """
    has_single = 1 in np.unique(y, return_counts=True)[1]
    stopping = False if has_single else "auto"
    path = "ensemble.HistGradientBoostingClassifier"
    return classifier(path, random_state=None, early_stopping=stopping)(X, y, seed)


def fit_probabilities(
    model: Any, X: Array, y: Array, *, is_scaled: bool
) -> Callable[[Array], Array]:
    """Fit a classifier of scikit-learn; inputs [N, D] in raw units, and class indices [N]."""
    scaled = Standardiser.fit(X).transform if is_scaled else np.asarray
    with _threads_for(X):
        model.fit(scaled(X), y)
    return lambda X: np.asarray(model.predict_proba(scaled(X)), np.float64)


def sklearn_class(path: str) -> Any:
    """Import a class of scikit-learn.

    :param path: Module and class, such as "ensemble.RandomForestRegressor".
    :raises ImportError: If scikit-learn is not installed.
    """
    module, _, name = path.partition(".")
    return getattr(import_optional(f"sklearn.{module}", "cli"), name)


def _threads_for(X: Array) -> contextlib.AbstractContextManager[Any]:
    """As many threads of OpenMP as pay for the rows of a table [N, D]."""
    if len(X) >= _ROWS_FOR_THREADS:
        return contextlib.nullcontext()
    # scikit-learn brings it.
    limits = import_optional("threadpoolctl", "cli").threadpool_limits
    return limits(1, user_api="openmp")
