"""The comparison with other models: what they predict, and what is made of their scores."""

from __future__ import annotations

import comparison
import numpy as np
import pytest
from comparison import MODELS, ComparisonCell, compare, comparison_scores
from reference import normal_crps
from scipy import stats
from sklearn.metrics import log_loss

from gpflow_dwp.estimator import DeepWishartRegressor

FEW = {"depth": 2, "num_steps": 1, "num_inducing": 5, "num_prediction_samples": 3}
FEW |= {"kernel": "SquaredExponential", "likelihood": "gaussian"}


def numbers(rows: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of different units, a target far from standardised."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2)) * [1.0, 100.0] + [0.0, 1e3]
    return X, 500.0 + 40.0 * X[:, 0] + 0.2 * (X[:, 1] - 1e3) + 4.0 * rng.normal(size=rows)


@pytest.mark.parametrize("name", [*MODELS[True]][:-1])
def test_rivals_predict_raw_units(name: str) -> None:
    """Better than the mean, and with deviations that are of the unit of the errors."""
    if name == "ngboost":
        pytest.importorskip("ngboost")
    X, y = numbers()
    model = MODELS[True][name](0, 2).fit(X[:60], y[:60])
    found = comparison.score_numbers(model, X[60:], y[60:])
    error = found["rmse"]
    assert error < 0.6 * np.std(y)
    assert found["nlpd"] < stats.norm.entropy(scale=error) + 1.0
    assert 0.1 * error < found["crps"] < error


@pytest.mark.parametrize("name", [*MODELS[False]][:-1])
def test_classifiers_give_probabilities_in_the_order_of_the_classes(name: str) -> None:
    """The last class is rare, so that a wrong order is seen."""
    rng = np.random.default_rng(1)
    y = np.minimum(rng.integers(0, 4, 150), 2)[::-1].astype(float)
    X = np.stack([4.0 * y + 0.5 * rng.normal(size=150), 1e3 * rng.normal(size=150)], 1)
    probabilities = MODELS[False][name](0, 2).fit(X[:120], y[:120]).predict_proba(X[120:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-6)
    assert np.mean(probabilities.argmax(axis=1) == y[120:]) > 0.7


class Fixed:
    """A normal prediction, or probabilities."""

    def predict(self, X: np.ndarray, return_std: bool = False) -> object:
        return (X[:, 0], X[:, 1]) if return_std else X[:, 0]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return X


def test_scores_of_numbers_are_those_of_the_normal() -> None:
    """Against SciPy's density, and the CRPS in closed form."""
    X, y = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([0.5, -1.0])
    found = comparison.score_numbers(Fixed(), X, y)
    assert found["nlpd"] == pytest.approx(-stats.norm.logpdf(y, X[:, 0], X[:, 1]).mean())
    assert found["crps"] == pytest.approx(normal_crps(y, *X.T).mean(), abs=2e-3)
    assert found["coverage_90"] == 1.0


def test_scores_of_labels_are_those_of_scikit_learn() -> None:
    X = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
    y = np.array([0.0, 0.0, 2.0])
    found = comparison.score_labels(Fixed(), X, y)
    assert found["nll"] == pytest.approx(log_loss(y, X, labels=[0, 1, 2]))
    assert found["error"] == pytest.approx(1 / 3)


def test_differences_to_the_best_are_paired() -> None:
    """A model that loses by less than their standard error is among the best."""
    nlpd = {"dwp": [1.0, 2.0, 3.0], "exact-gp": [1.1, 2.3, 2.75], "ngboost": [2.0, 3.0, 4.1]}
    lines = [
        {"table": "yacht", "label": label, "split": split, "nlpd": value, "fit_seconds": 1.0}
        for label, values in nlpd.items()
        for split, value in enumerate(values)
    ]
    scores = comparison_scores([{**lines[0], "nlpd": 99.0}, *lines]).set_index(["metric", "label"])
    row = scores.loc[("nlpd", "exact-gp")]
    differences = np.array([0.1, 0.3, -0.25])
    assert row["difference"] == pytest.approx(differences.mean())
    assert row["standard_error"] == pytest.approx(differences.std(ddof=1) / np.sqrt(3))
    assert [scores.loc[("nlpd", name), "among_best"] for name in nlpd] == [True, True, False]
    assert not scores.loc["fit_seconds"]["among_best"].any()


@pytest.mark.parametrize(("table", "name"), [("diabetes", "bayesian-ridge"), ("wine", "logistic")])
def test_a_cell_is_fitted_and_scored(table: str, name: str) -> None:
    found = compare(ComparisonCell("", table, name, name, 0))
    score = "rmse" if table == "diabetes" else "error"
    assert {score, "fit_seconds"} < set(found)
    assert found[score] < (70.0 if table == "diabetes" else 0.1)


@pytest.mark.usefixtures("eager")
def test_ours_is_scored_by_its_own_density() -> None:
    """Not as a normal with its mean and deviation."""
    X, y = numbers(40)
    model = DeepWishartRegressor(random_state=0, **FEW).fit(X, y)
    found = comparison.score_numbers(model, X, y)
    assert found["nlpd"] == pytest.approx(-model.predict_log_density(X, y).mean(), rel=1e-6)
