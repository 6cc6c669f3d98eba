"""What a deep model has to beat: linear models, boosting, GPflow's Gaussian processes.

Each ``fit_*`` takes X [N, D], y [N] and a seed. It returns the bound on, or the logarithm of, the
marginal likelihood in nats (None for none), and a function that takes inputs to predictions: mean
and variance of numbers, [N] each, or the probabilities of labels, [N, C].
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gpflow
import numpy as np
from threadpoolctl import threadpool_limits

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation.predictions import NumberPredictions, Scores, predicted_numbers
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.optional import import_optional

__all__ = [
    "fit_boosting",
    "fit_boosting_classifier",
    "fit_gp",
    "fit_linear",
    "fit_logistic",
    "score",
    "simple_scores",
]

Fitted = tuple[float | None, Callable[[Array], Any]]
Fit = Callable[[Array, Array, int], Fitted]

_MOST_EXACT_ROWS, _NUM_INDUCING = 1_000, 100
_SCIPY_ITERATIONS = 200
_MOST_FOLDS = 5
_LEAST_PROBABILITY = 1e-15
# Below, boosting's threads wait for each other longer than they work: on two cores that are busy
# with something else, 72 to 5,000 rows take 11 to 15 times as long as by one thread.
_ROWS_FOR_THREADS = 10_000


def simple_scores(
    train: tuple[Array, Array],
    test: tuple[Array, Array],
    target: Standardiser | None,
    *,
    seed: int = 0,
) -> dict[str, Scores | Exception]:
    """Train a linear model, boosting and, of numbers, a GP; return their scores by name.

    The GP is exact up to 1,000 rows. A model that fails has its error in place of scores.

    :param train: X [N, D] and Y [N, 1], standardised.
    :param test: Test rows, in the same form.
    :param target: Standardiser of numbers, in whose raw units the scores are; None for labels.
    :param seed: For inducing inputs of the sparse GP, which start at 100 rows, and for folds.
    :raises ImportError: If scikit-learn is not installed.
    """
    fits: dict[str, Fit] = {
        "logistic regression": fit_logistic,
        "gradient boosting": fit_boosting_classifier,
    }
    if target is not None:
        rows, points = np.unique(train[0], axis=0), None
        name = "exact GP (GPflow's GPR)"
        if len(train[0]) > _MOST_EXACT_ROWS:
            name = "sparse GP (GPflow's SGPR)"
            rng = np.random.default_rng(seed)
            points = rng.choice(rows, min(_NUM_INDUCING, len(rows)), replace=False)
        fits = {
            "linear regression": fit_linear,
            "gradient boosting": fit_boosting,
            name: partial(fit_gp, inducing_inputs=points),
        }
    found: dict[str, Scores | Exception] = {}
    for name, fit in fits.items():
        try:
            found[name] = score(fit, train, test, target, seed)
        except ImportError:
            raise
        except Exception as error:  # of any kind: each is another library's
            found[name] = error
    return found


def score(
    fit: Fit,
    train: tuple[Array, Array],
    test: tuple[Array, Array],
    target: Standardiser | None = None,
    seed: int = 0,
) -> Scores:
    """Fit a model to training rows, X [N, D] and Y [N, 1], and score its predictions of others.

    Parameters are those of :func:`simple_scores`.
    """
    start = time.perf_counter()
    elbo, predict = fit(train[0], train[1][:, 0], seed)
    seconds, Y = time.perf_counter() - start, test[1]
    predicted = predict(test[0])
    if isinstance(predicted, tuple):
        mean, variance = (moment[None, :, None] for moment in predicted)
        if target is not None:
            Y = target.inverse_transform(Y)
        distribution = PredictiveDistribution(mean, variance, target)
        numbers = NumberPredictions(*predicted_numbers(distribution, Y))
        if elbo is not None:
            elbo = elbo / len(train[0]) + (0.0 if target is None else target.log_density_offset)
        return numbers.scores(Y[:, 0], elbo=elbo, seconds=seconds)
    chosen = predicted[np.arange(len(Y)), Y[:, 0].astype(int)]
    density = float(np.log(np.maximum(chosen, _LEAST_PROBABILITY)).mean())
    return Scores.of_labels(Y[:, 0], predicted, log_likelihood=density, seconds=seconds, elbo=None)


def fit_linear(X: Array, y: Array, seed: int) -> Fitted:
    """Fit Bayesian linear regression (scikit-learn's ``BayesianRidge``).

    Precisions of noise and weights maximise the marginal likelihood, which is exact here.
    """
    # Older versions of scikit-learn have the right deviations for centred inputs only.
    centre = X.mean(axis=0)
    linear_model = import_optional("sklearn.linear_model", "cli")
    model = linear_model.BayesianRidge(compute_score=True).fit(X - centre, y)

    def predict(X: Array) -> tuple[Array, Array]:
        mean, deviation = model.predict(X - centre, return_std=True)
        return mean, np.square(deviation)

    return float(model.scores_[-1]), predict


def fit_logistic(X: Array, y: Array, seed: int) -> Fitted:
    """Fit logistic regression (scikit-learn's, with its default penalty)."""
    linear_model = import_optional("sklearn.linear_model", "cli")
    return None, linear_model.LogisticRegression(max_iter=1_000).fit(X, y).predict_proba


def fit_boosting(X: Array, y: Array, seed: int) -> Fitted:
    """Fit scikit-learn's boosting on histograms; its noise is that of residuals of five folds.

    Fewer rows have a fold each.
    """
    ensemble = import_optional("sklearn.ensemble", "cli")
    model_selection = import_optional("sklearn.model_selection", "cli")
    model = ensemble.HistGradientBoostingRegressor(random_state=seed)
    folds = model_selection.KFold(min(_MOST_FOLDS, len(X)), shuffle=True, random_state=seed)
    with _threads_for(X):
        held_out = model_selection.cross_val_predict(model, X, y, cv=folds)
        model.fit(X, y)
    variance = np.mean(np.square(y - held_out))
    return None, lambda X: (model.predict(X), np.full(len(X), variance))


def fit_boosting_classifier(X: Array, y: Array, seed: int) -> Fitted:
    """Fit scikit-learn's boosting on histograms to labels.

    Of many rows it holds out some of each class, to stop early; not where a class has one only.
    """
    stopping = False if 1 in np.unique(y, return_counts=True)[1] else "auto"
    ensemble = import_optional("sklearn.ensemble", "cli")
    model = ensemble.HistGradientBoostingClassifier(random_state=seed, early_stopping=stopping)
    with _threads_for(X):
        model.fit(X, y)
    return None, model.predict_proba


def fit_gp(X: Array, y: Array, seed: int, inducing_inputs: Array | None = None) -> Fitted:
    """Fit GPflow's ``GPR``, or ``SGPR``, by L-BFGS, with one lengthscale per input.

    :param inducing_inputs: Where inducing inputs start, [M, D]; None for an exact GP.
    """
    data, noise = (X, y[:, None]), float(np.exp(-4.0))
    kernel = gpflow.kernels.SquaredExponential(lengthscales=np.ones(X.shape[1]))
    if inducing_inputs is None:
        model = gpflow.models.GPR(data, kernel, noise_variance=noise)
    else:
        model = gpflow.models.SGPR(data, kernel, inducing_inputs.copy(), noise_variance=noise)
    gpflow.optimizers.Scipy().minimize(
        model.training_loss_closure(compile=False),
        model.trainable_variables,
        options={"maxiter": _SCIPY_ITERATIONS},
        tf_fun_args={"autograph": False},
    )

    def predict(X: Array) -> tuple[Array, Array]:
        mean, variance = model.predict_y(X)
        return mean.numpy()[:, 0], variance.numpy()[:, 0]

    return float(model.maximum_log_likelihood_objective()), predict


def _threads_for(X: Array) -> threadpool_limits:
    """As many threads of OpenMP as pay for the rows of a table [N, D]."""
    return threadpool_limits(1 if len(X) < _ROWS_FOR_THREADS else None, user_api="openmp")
