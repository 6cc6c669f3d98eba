"""What deep models are compared with, against GPflow's exact GP, scikit-learn and SciPy."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any
from unittest.mock import Mock

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from reference import normal_crps
from scipy import special, stats
from sklearn import ensemble
from sklearn.linear_model import BayesianRidge, LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation.baselines import (
    fit_boosting_classifier,
    fit_gp,
    fit_linear,
    fit_logistic,
    score,
    simple_scores,
)
from gpflow_dwp.evaluation.predictions import Scores

Data = tuple[np.ndarray, np.ndarray]
BASELINES = "gpflow_dwp.evaluation.baselines"


def linear_data(rows: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=[rows, 2])
    return X, 2.0 + X @ [[1.5], [-0.4]] + 0.7 * rng.normal(size=[rows, 1])


def curved_data(rows: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=[rows, 1])
    return X, np.sin(2.0 * X) + 0.2 * rng.normal(size=[rows, 1])


def labels(rows: int, seed: int, classes: int) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=[rows, 2])
    signal = X[:, :1] + 0.3 * rng.normal(size=[rows, 1])
    return X, np.digitize(signal, [[0.0], [-0.5, 0.5]][classes - 2]).astype(float)


def test_linear_scores_are_those_of_an_exact_gp_wherever_inputs_lie() -> None:
    """The evidence, densities and errors; catches deviations of inputs that are not centred."""
    (X, Y), test = linear_data(20, 0), linear_data(50, 1)
    fitted = BayesianRidge().fit(X, Y[:, 0])
    model = gpflow.models.GPR(
        (X - X.mean(axis=0), Y - Y.mean()),
        gpflow.kernels.Linear(variance=1.0 / fitted.lambda_),
        noise_variance=1.0 / fitted.alpha_,
    )
    mean, variance = (part.numpy() for part in model.predict_y(test[0] - X.mean(axis=0)))
    mean += Y.mean()
    crps = normal_crps(test[1], mean, np.sqrt(variance)).mean()
    for shift in (0.0, np.array([100.0, -30.0])):
        scores = score(fit_linear, (X + shift, Y), (test[0] + shift, test[1]))
        # scikit-learn adds the densities of its hyperpriors, which are 1e-6 wide.
        evidence = float(model.log_marginal_likelihood()) / 20
        assert scores.elbo == pytest.approx(evidence, abs=1e-5)
        assert scores.error == pytest.approx(np.sqrt(np.mean((mean - test[1]) ** 2)), rel=1e-6)
        density = stats.norm.logpdf(test[1], mean, np.sqrt(variance)).mean()
        assert scores.log_likelihood == pytest.approx(density, rel=1e-6)
        assert scores.crps == pytest.approx(crps, rel=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_scores(classes: int) -> None:
    train, (X, Y) = labels(60, 0, classes), labels(30, 1, classes)
    fitted = LogisticRegression(max_iter=1_000).fit(train[0], train[1][:, 0])
    logits = X @ fitted.coef_.T + fitted.intercept_
    if classes == 2:
        logits = np.hstack([np.zeros_like(logits), logits])
    log_probabilities = logits - special.logsumexp(logits, axis=1, keepdims=True)
    truth = Y[:, 0].astype(int)
    scores = score(fit_logistic, train, (X, Y))
    assert scores.elbo is None and scores.seconds > 0.0
    assert scores.log_likelihood == pytest.approx(log_probabilities[range(30), truth].mean())
    assert scores.error == np.mean(logits.argmax(axis=1) != truth)
    assert 0.0 < scores.error < 0.5


@pytest.mark.usefixtures("eager")
def test_sparse_bound_with_all_points_is_nearly_the_evidence() -> None:
    train, test = curved_data(25, 0), curved_data(40, 1)
    kernel = gpflow.kernels.SquaredExponential(lengthscales=[1.0])
    exact = gpflow.models.GPR(train, kernel, noise_variance=float(np.exp(-4.0)))
    gpflow.optimizers.Scipy().minimize(
        exact.training_loss, exact.trainable_variables, options={"maxiter": 200}
    )
    evidence = float(exact.log_marginal_likelihood())
    points = train[0].copy()
    own, sparse = (score(partial(fit_gp, inducing_inputs=Z), train, test) for Z in (None, points))
    np.testing.assert_array_equal(points, train[0])  # which are not moved
    assert own.elbo == pytest.approx(evidence / 25, rel=1e-6)
    assert sparse.elbo is not None
    assert evidence - 0.05 < 25 * sparse.elbo < evidence + 1e-4
    mean, _ = exact.predict_y(test[0])
    assert sparse.error == pytest.approx(np.sqrt(np.mean((mean - test[1]) ** 2)), rel=1e-2)
    density = float(np.mean(exact.predict_log_density(test)))
    assert sparse.log_likelihood == pytest.approx(density, abs=1e-2)


def test_names_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(ImportError, match=r"sklearn .*gpflow-dwp\[cli\]"):
        simple_scores(linear_data(5, 0), linear_data(5, 1), None)


def test_a_model_that_fails_has_its_error_in_place_of_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Catches a rival's matrix that cannot be factorised and ends a run."""
    error = tf.errors.InvalidArgumentError(None, None, "Input matrix is not invertible.")
    monkeypatch.setattr(f"{BASELINES}.fit_gp", Mock(side_effect=error))
    found = simple_scores(linear_data(20, 0), linear_data(5, 1), Standardiser([0.0], [1.0]))
    *others, gp = found.values()
    assert gp is error
    assert all(isinstance(each, Scores) for each in others)


def test_scores_are_in_raw_units_and_large_tables_have_a_sparse_gp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Catches a density or an error per standard unit, and inducing inputs beyond the rows."""
    train, test, target = linear_data(20, 0), linear_data(50, 1), Standardiser([100.0], [20.0])
    monkeypatch.setattr(f"{BASELINES}._MOST_EXACT_ROWS", 19)
    raw, own = simple_scores(train, test, target), score(fit_linear, train, test)
    assert list(raw) == ["linear regression", "gradient boosting", "sparse GP (GPflow's SGPR)"]
    linear, offset = raw["linear regression"], np.log(20.0)
    assert linear.log_likelihood == pytest.approx(own.log_likelihood - offset)
    assert linear.elbo == pytest.approx(own.elbo - offset)
    assert (linear.error, linear.crps) == pytest.approx((20.0 * own.error, 20.0 * own.crps))
    assert raw["sparse GP (GPflow's SGPR)"].r2 > 0.5


@pytest.mark.parametrize(("num_rows", "threads"), [(72, {1}), (10_000, {2})])
def test_a_small_table_gets_one_thread(
    num_rows: int, threads: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several that wait for each other take 11 to 15 times as long beside other programs."""
    seen: set[int] = set()

    def fit(model: Any, X: np.ndarray, y: np.ndarray) -> None:
        found = [each for each in threadpool_info() if each["user_api"] == "openmp"]
        seen.update(each["num_threads"] for each in found)

    monkeypatch.setattr(ensemble.HistGradientBoostingClassifier, "fit", fit)
    with threadpool_limits(2, user_api="openmp"):
        fit_boosting_classifier(np.zeros([num_rows, 1]), np.zeros(num_rows), 0)
    assert seen == threads


def test_a_class_of_a_single_row_is_not_split() -> None:
    """Above 10,000 rows scikit-learn would hold out some of each class."""
    y = np.arange(10_001) % 2 + 0.0
    y[0] = 2.0
    _, predict = fit_boosting_classifier(y[:, None], y, 0)
    probabilities = predict(np.array([[0.0], [1.0]]))
    assert probabilities.argmax(axis=1).tolist() == [0, 1] and probabilities.shape == (2, 3)
