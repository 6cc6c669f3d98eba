"""What deep models are compared with, against GPflow's exact GP, scikit-learn and NumPy."""

from __future__ import annotations

import sys
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats
from sklearn.linear_model import BayesianRidge, LogisticRegression

from gpflow_dwp.evaluation.baselines import gp_scores, linear_scores, logistic_scores

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


@pytest.fixture
def svgp(monkeypatch: pytest.MonkeyPatch) -> list[gpflow.models.SVGP]:
    """The models that are trained, with less effort than usual."""
    made = []

    class Recorded(gpflow.models.SVGP):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            made.append(self)

    monkeypatch.setattr(gpflow.models, "SVGP", Recorded)
    monkeypatch.setattr(f"{BASELINES}._ADAM_STEPS", 30)
    return made


def test_linear_bound_is_the_evidence_of_an_exact_gp() -> None:
    X, Y = linear_data(20, 0)
    fitted = BayesianRidge().fit(X, Y[:, 0])
    model = gpflow.models.GPR(
        (X - X.mean(axis=0), Y - Y.mean()),
        gpflow.kernels.Linear(variance=1.0 / fitted.lambda_),
        noise_variance=1.0 / fitted.alpha_,
    )
    # scikit-learn adds the densities of its hyperpriors, which are 1e-6 wide.
    evidence = float(model.log_marginal_likelihood()) / 20
    assert linear_scores((X, Y), (X, Y)).elbo == pytest.approx(evidence, abs=1e-5)


def test_linear_predictions_are_those_of_an_exact_gp() -> None:
    (X, Y), test = linear_data(20, 0), linear_data(50, 1)
    fitted = BayesianRidge().fit(X, Y[:, 0])
    model = gpflow.models.GPR(
        (X - X.mean(axis=0), Y - Y.mean()),
        gpflow.kernels.Linear(variance=1.0 / fitted.lambda_),
        noise_variance=1.0 / fitted.alpha_,
    )
    mean, variance = (part.numpy() for part in model.predict_y(test[0] - X.mean(axis=0)))
    mean += Y.mean()
    scores = linear_scores((X, Y), test)
    assert scores.error == pytest.approx(np.sqrt(np.mean((mean - test[1]) ** 2)), rel=1e-6)
    density = stats.norm.logpdf(test[1], mean, np.sqrt(variance)).mean()
    assert scores.log_likelihood == pytest.approx(density, rel=1e-6)


def test_linear_scores_do_not_depend_on_where_inputs_lie() -> None:
    train, test = linear_data(20, 0), linear_data(50, 1)
    shift = np.array([100.0, -30.0])
    moved = linear_scores((train[0] + shift, train[1]), (test[0] + shift, test[1]))
    np.testing.assert_allclose(moved[:3], linear_scores(train, test)[:3], rtol=1e-6)


def test_linear_scores_of_an_exact_fit_are_finite() -> None:
    X = np.linspace(-1.0, 1.0, 12)[:, None]
    scores = linear_scores((X, 2.0 * X), (X, 2.0 * X))
    known = [score for score in scores if score is not None]
    assert np.isfinite(known).all() and scores.error == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_scores(classes: int) -> None:
    train, (X, Y) = labels(60, 0, classes), labels(30, 1, classes)
    fitted = LogisticRegression(max_iter=1_000).fit(train[0], train[1][:, 0])
    logits = X @ fitted.coef_.T + fitted.intercept_
    if classes == 2:
        logits = np.hstack([np.zeros_like(logits), logits])
    log_probabilities = logits - special.logsumexp(logits, axis=1, keepdims=True)
    truth = Y[:, 0].astype(int)
    scores = logistic_scores(train, (X, Y))
    assert scores.elbo is None and scores.seconds > 0.0
    expected = log_probabilities[range(30), truth].mean()
    assert scores.log_likelihood == pytest.approx(expected)
    assert scores.error == np.mean(logits.argmax(axis=1) != truth)
    assert 0.0 < scores.error < 0.5


def test_sparse_bound_with_all_points_is_nearly_the_evidence() -> None:
    train, test = curved_data(25, 0), curved_data(40, 1)
    kernel = gpflow.kernels.SquaredExponential(lengthscales=[1.0])
    exact = gpflow.models.GPR(train, kernel, noise_variance=float(np.exp(-4.0)))
    gpflow.optimizers.Scipy().minimize(
        exact.training_loss, exact.trainable_variables, options={"maxiter": 200}
    )
    evidence = float(exact.log_marginal_likelihood())
    own = gp_scores(train, test, None)
    assert own.elbo == pytest.approx(evidence / 25, rel=1e-6)
    scores = gp_scores(train, test, train[0])
    assert scores.elbo is not None
    assert evidence - 0.05 < 25 * scores.elbo < evidence + 1e-4
    mean, _ = exact.predict_y(test[0])
    assert scores.error == pytest.approx(np.sqrt(np.mean((mean - test[1]) ** 2)), rel=1e-2)
    density = float(tf.reduce_mean(exact.predict_log_density(test)))
    assert scores.log_likelihood == pytest.approx(density, abs=1e-2)


def test_arrays_are_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{BASELINES}._SCIPY_ITERATIONS", 2)
    train = curved_data(25, 0)
    points = train[0][:5].copy()
    before = [array.copy() for array in (*train, points)]
    gp_scores(train, train, points)
    for array, old in zip((*train, points), before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_sparse_gp_of_two_classes(svgp: list[gpflow.models.SVGP]) -> None:
    train, (X, Y) = labels(60, 0, 2), labels(30, 1, 2)
    scores = gp_scores(train, (X, Y), train[0][:8], gpflow.likelihoods.Bernoulli())
    (model,) = svgp
    mean, variance = (part.numpy() for part in model.predict_f(X))
    probability = stats.norm.cdf(mean / np.sqrt(1.0 + variance))
    expected = np.log(np.where(Y == 1.0, probability, 1.0 - probability)).mean()
    # GPflow keeps probabilities 1e-3 away from 0 and 1.
    assert scores.log_likelihood == pytest.approx(expected, abs=2e-3)
    assert scores.error == np.mean((probability > 0.5) != (Y == 1.0))
    assert 0.0 < scores.error < 0.5
    # Of all rows, as one batch has them all.
    assert scores.elbo == pytest.approx(float(model.elbo(train)) / 60, rel=1e-9)


def test_sparse_gp_of_three_classes(svgp: list[gpflow.models.SVGP]) -> None:
    train, (X, Y) = labels(60, 0, 3), labels(30, 1, 3)
    likelihood = gpflow.likelihoods.Softmax(3)
    scores = gp_scores(train, (X, Y), train[0][:8], likelihood)
    (model,) = svgp
    mean, variance = (part.numpy() for part in model.predict_f(X))
    noise = np.random.default_rng(0).normal(size=[20_000, 30, 3])
    probability = special.softmax(mean + np.sqrt(variance) * noise, axis=-1).mean(axis=0)
    truth = Y[:, 0].astype(int)
    # GPflow takes 100 draws for each of 30 points: a standard error below 0.01.
    expected = np.log(probability[range(30), truth]).mean()
    assert scores.log_likelihood == pytest.approx(expected, abs=0.04)
    # As many of the likeliest classes may be near ties.
    assert scores.error == pytest.approx(np.mean(probability.argmax(axis=1) != truth), abs=0.07)
    bounds = [float(model.elbo((train[0], train[1].astype(np.int32)))) / 60 for _ in range(20)]
    assert scores.elbo == pytest.approx(np.mean(bounds), abs=0.02)


def test_bound_from_minibatches_is_that_of_all_rows(
    svgp: list[gpflow.models.SVGP], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{BASELINES}._BATCH_SIZE", 30)
    train = labels(60, 0, 2)
    scores = gp_scores(train, train, train[0][:8], gpflow.likelihoods.Bernoulli())
    (model,) = svgp
    # 20 batches are 10 times all rows, but for shuffled copies at the seams.
    assert scores.elbo == pytest.approx(float(model.elbo(train)) / 60, rel=0.02)


@pytest.mark.parametrize("scores", [linear_scores, logistic_scores])
def test_names_what_is_not_installed(scores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(ImportError, match=r"sklearn .*gpflow-dwp\[cli\]"):
        scores(linear_data(5, 0), linear_data(5, 1))
