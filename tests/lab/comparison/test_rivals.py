"""The models that are compared: what each predicts, from raw units to raw units."""

from __future__ import annotations

import sys

import gpflow
import numpy as np
import pytest

from gpflow_dwp.evaluation import baselines
from gpflow_dwp.evaluation.sklearn_models import fit_boosting
from gpflow_dwp.lab.comparison import rivals
from gpflow_dwp.lab.comparison.models import COMPARED_MODELS, estimator_class

FEW = {"depth": 2, "num_steps": 3, "num_inducing": 5, "num_prediction_samples": 3}
# Ours is run, with its settings, by a test of cells.
REGRESSORS = [
    name for name in COMPARED_MODELS if "regression" in COMPARED_MODELS[name].fits and name != "dwp"
]
CLASSIFIERS = [name for name, model in COMPARED_MODELS.items() if "classification" in model.fits]


def numbers(rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of different units, a target far from standardised."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2)) * [1.0, 100.0] + [0.0, 1e3]
    return X, 500.0 + 40.0 * X[:, 0] + 0.2 * (X[:, 1] - 1e3) + 4.0 * rng.normal(size=rows)


def classes(num_classes: int, rows: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Classes that one input separates, the last one rare, so that a wrong order is seen."""
    rng = np.random.default_rng(1)
    y = np.minimum(rng.integers(0, num_classes + 1, rows), num_classes - 1)[::-1].astype(float)
    return np.stack([4.0 * y + 0.5 * rng.normal(size=rows), 1e3 * rng.normal(size=rows)], 1), y


@pytest.mark.parametrize("name", REGRESSORS)
def test_rivals_predict_raw_units(name: str) -> None:
    """Better than the mean, and with deviations that are of the unit of the errors.

    NGBoost takes 500 rounds, with which it is far too sure of 60 rows.
    """
    model = COMPARED_MODELS[name]
    if name == "ngboost":
        pytest.importorskip("ngboost")
    model.load()
    X, y = numbers(80)

    prediction = model.fits["regression"](X[:60], y[:60], 0)(X[60:])

    mean, (low, high) = prediction.mean(), prediction.quantiles(np.array([0.1587, 0.8413])).T
    errors = y[60:] - mean
    assert mean.shape == low.shape == prediction.log_density(y[60:]).shape == (20,)
    assert (low < mean).all() and (mean < high).all()
    assert np.std(errors) < 0.6 * np.std(y)
    spread = np.mean(high - low) / 2.0
    assert 0.06 < spread / np.sqrt(np.mean(np.square(errors))) < 3.0


@pytest.mark.parametrize(
    ("name", "num_classes"),
    # Ours, which takes seconds, has tests of its own for two classes.
    [(name, number) for name in CLASSIFIERS for number in (2, 3) if (name, number) != ("dwp", 2)],
)
def test_classifiers_give_probabilities_in_the_order_of_the_classes(
    name: str, num_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baselines, "_ADAM_STEPS", 25)
    monkeypatch.setattr(rivals, "_NUM_INDUCING", 8)
    X, y = classes(num_classes)
    COMPARED_MODELS[name].load()

    settings = FEW if name == "dwp" else {}
    predict = COMPARED_MODELS[name].fits["classification"](X[:120], y[:120], 0, **settings)
    probabilities = predict(X[120:])

    assert probabilities.shape == (30, num_classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-6)
    assert (probabilities >= 0.0).all()
    if name != "dwp":  # which has taken three steps
        assert np.mean(probabilities.argmax(axis=1) == y[120:]) > 0.7


def test_boosting_has_the_spread_of_out_of_fold_residuals() -> None:
    """Residuals of rows that were trained on would be far too small."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    from sklearn.model_selection import KFold

    X, y = numbers()
    squares = 0.0
    for train, held_out in KFold(5, shuffle=True, random_state=7).split(X):
        model = ensemble.HistGradientBoostingRegressor(random_state=7).fit(X[train], y[train])
        squares += np.square(y[held_out] - model.predict(X[held_out])).sum()

    prediction = fit_boosting(X, y, 7)(X)

    assert prediction.deviations == pytest.approx(np.sqrt(squares / len(y)))
    everything = ensemble.HistGradientBoostingRegressor(random_state=7).fit(X, y)
    np.testing.assert_allclose(prediction.mean(), everything.predict(X))


def test_a_forest_has_the_spread_of_out_of_bag_residuals() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    X, y = numbers()

    prediction = rivals.fit_forest(X, y, 7)(X)

    forest = ensemble.RandomForestRegressor(random_state=7, oob_score=True).fit(X, y)
    out_of_bag = np.sqrt(np.mean(np.square(y - forest.oob_prediction_)))
    assert prediction.deviations == pytest.approx(out_of_bag)
    assert out_of_bag > 1.5 * np.sqrt(np.mean(np.square(y - prediction.mean())))


def test_the_gp_keeps_the_start_of_the_largest_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the predictions of a GP that is put there by hand, among starts that are not trained."""
    X, y = numbers(30)
    models = []
    start = rivals._random_start

    def watched(*arguments: object) -> gpflow.models.GPModel:
        models.append(start(*arguments))
        return models[-1]

    monkeypatch.setattr(rivals, "_random_start", watched)
    monkeypatch.setattr(gpflow.optimizers.Scipy, "minimize", lambda *arguments, **_: None)

    prediction = rivals.fit_gp(X, y, 0)(X[:5])

    losses = [float(model.training_loss()) for model in models]
    assert len(set(losses)) == 3
    mean, variance = models[int(np.argmin(losses))].predict_y(
        (X[:5] - X.mean(axis=0)) / X.std(axis=0)
    )
    np.testing.assert_allclose(prediction.mean(), mean[:, 0] * y.std() + y.mean(), rtol=1e-9)
    np.testing.assert_allclose(prediction.deviations, np.sqrt(variance[:, 0]) * y.std(), rtol=1e-9)


def test_the_gp_is_that_of_another_library() -> None:
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    X, y = numbers(40)
    scaled, target = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    kernel = ConstantKernel() * RBF([2.0, 2.0], (1e-3, 1e6)) + WhiteKernel(0.1)
    other = gaussian_process.GaussianProcessRegressor(
        kernel, n_restarts_optimizer=2, random_state=0
    ).fit(scaled, target)
    mean, deviation = other.predict(scaled[:5], return_std=True)

    found = rivals.fit_gp(X, y, 0)(X[:5])

    np.testing.assert_allclose(found.mean(), mean * y.std() + y.mean(), rtol=1e-3)
    np.testing.assert_allclose(found.deviations, deviation * y.std(), rtol=0.02)


def test_many_rows_have_a_sparse_gp(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exact one of 40,000 rows would take all of the memory."""
    monkeypatch.setattr(rivals, "_MOST_EXACT_ROWS", 50)
    monkeypatch.setattr(rivals, "_NUM_INDUCING", 10)
    kinds = []
    start = rivals._random_start

    def watched(*arguments: object) -> gpflow.models.GPModel:
        model = start(*arguments)
        kinds.append((type(model).__name__, getattr(model, "inducing_variable", None)))
        return model

    monkeypatch.setattr(rivals, "_random_start", watched)
    monkeypatch.setattr(gpflow.optimizers.Scipy, "minimize", lambda *arguments, **_: None)
    X, y = numbers()

    for rows in (51, 50):
        rivals.fit_gp(X[:rows], y[:rows], 0)

    assert [kind for kind, _ in kinds] == ["SGPR"] * 3 + ["GPR"] * 3
    assert kinds[0][1].Z.shape == (10, 2)


def test_a_start_that_fails_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A likelihood that is not a number must neither win nor be the end of the cell."""
    X, y = numbers(30)
    start, number = rivals._random_start, 0

    def broken(*arguments: object) -> gpflow.models.GPModel:
        nonlocal number
        number += 1
        model = start(*arguments)
        if number != 2:
            loss = model.training_loss
            model.training_loss = lambda: float("nan") * loss()
        return model

    monkeypatch.setattr(rivals, "_random_start", broken)
    monkeypatch.setattr(gpflow.optimizers.Scipy, "minimize", lambda *arguments, **_: None)
    assert np.isfinite(rivals.fit_gp(X, y, 0)(X).mean()).all()

    number = 2
    with pytest.raises(ArithmeticError, match="none of 3 starts led to a finite likelihood"):
        rivals.fit_gp(X, y, 0)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ngboost", None)

    with pytest.raises(ImportError, match=r"ngboost is needed .*gpflow-dwp\[rivals\]"):
        COMPARED_MODELS["ngboost"].load()


def test_there_is_no_estimator_for_another_task() -> None:
    with pytest.raises(ValueError, match="task must be one of regression, classification"):
        estimator_class("clustering")
