"""scikit-learn's own checks of what an estimator must do."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest
from gpflow.kernels import SquaredExponential
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpflow_dwp.estimator import DeepWishartClassifier, DeepWishartRegressor

SMALL = {
    "depth": 1,
    "kernel": "SquaredExponential",
    "likelihood": "gaussian",
    "num_inducing": 5,
    "num_prediction_samples": 3,
    "num_steps": 1,
}
# Two checks want good predictions, which a single layer makes after one step.
TRAINED = {"depth": 1, "num_inducing": 30, "num_steps": 5}

# Of arrays, which scikit-learn converts in one place for all.
KINDS = "data_not_an_array", "estimators_dtypes", "dtype_object"

# A list, because pytest takes no generator from version 10 on, which older scikit-learns give it.
CHECKS = parametrize_with_checks([DeepWishartRegressor(**SMALL), DeepWishartClassifier(**SMALL)])


@pytest.fixture(scope="module")
def unbounded() -> Iterator[None]:
    """Estimate no bounds, which is an eighth of the time, and no check asks for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpflow_dwp.selection.trainer.Trainer.estimate_bound", lambda *_: 0.0)
        yield


@pytest.mark.usefixtures("eager", "untraced", "unbounded")
@pytest.mark.filterwarnings("ignore::gpflow_dwp.exceptions.TargetWarning")
@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_scikit_learn_checks(
    estimator: Any, check: functools.partial[None], request: pytest.FixtureRequest
) -> None:
    """Without ``--runslow`` on one kind of array, and of the classifier what is its own."""
    name = check.func.__name__
    trains = name in ("check_classifiers_train", "check_regressors_train")
    own = ("classif", "sample_weight_equivalence")
    is_shared = isinstance(estimator, DeepWishartClassifier) and not any(n in name for n in own)
    is_shared |= trains and check.keywords.get("X_dtype") != "float32"
    is_shared |= any(part in name for part in KINDS)
    if is_shared and not request.config.getoption("--runslow"):
        pytest.skip("slow: runs with --runslow")
    if trains:
        estimator.set_params(**TRAINED)
    if name.startswith("check_sample_weight_equivalence"):
        # Adam makes more of roundings with each step, where gradients are nearly zero.
        deep = {"depth": 2, "kernel": SquaredExponential(), "num_inducing": 50}
        estimator = clone(estimator).set_params(**deep)
    check(estimator)


def test_checks_that_are_declared_to_fail_are_scikit_learns() -> None:
    """Catches a name that scikit-learn has changed: its check would fail undeclared."""
    names = {argument[1].func.__name__ for argument in CHECKS.args[1]}
    assert {*DeepWishartRegressor.expected_failed_checks} <= names
