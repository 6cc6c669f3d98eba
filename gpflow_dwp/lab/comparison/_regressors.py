"""Rivals in regression. Each takes X [N, D], y [N] and a seed, and returns what predicts."""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import numpy as np
import tensorflow as tf
from scipy.cluster.vq import kmeans2

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.lab.comparison.predictions import NormalPrediction
from gpflow_dwp.optional import import_optional

__all__ = [
    "fit_bayesian_ridge",
    "fit_gp",
    "fit_hist_gb",
    "fit_ngboost",
    "fit_random_forest",
    "kmeans_centres",
]

Predict = Callable[[Array], NormalPrediction]

_MOST_EXACT_ROWS = 2_000
_NUM_INDUCING = 100
_NUM_STARTS = 3
_NUM_FOLDS = 5


def fit_gp(X: Array, y: Array, seed: int) -> Predict:
    """Fit GPflow's GPR, or above 2,000 rows its SGPR, from three starts.

    :raises ArithmeticError: If no start leads to a finite marginal likelihood.
    """
    inputs, targets = Standardiser.fit(X), Standardiser.fit(y[:, None])
    data = inputs.transform(X), targets.transform(y[:, None])
    rng = np.random.default_rng(seed)
    is_exact = len(X) <= _MOST_EXACT_ROWS
    centres = None if is_exact else kmeans_centres(data[0], rng)
    best, highest = None, -np.inf
    for _ in range(_NUM_STARTS):
        model = _random_start(data, centres, rng)
        try:
            gpflow.optimizers.Scipy().minimize(
                model.training_loss,
                model.trainable_variables,
                tf_fun_args={"autograph": False},
            )
            likelihood = -float(model.training_loss())
        except tf.errors.InvalidArgumentError:  # a covariance that has no Cholesky factor
            continue
        if likelihood > highest:
            best, highest = model, likelihood
    if best is None:
        raise ArithmeticError(f"none of {_NUM_STARTS} starts led to a finite likelihood")

    def predict(X: Array) -> NormalPrediction:
        mean, variance = (part.numpy() for part in best.predict_y(inputs.transform(X)))
        raw = targets.inverse_transform(mean), targets.inverse_transform_variance(variance)
        return NormalPrediction(raw[0][:, 0], np.sqrt(raw[1][:, 0]))

    return predict


def _random_start(
    data: tuple[Array, Array], centres: Array | None, rng: np.random.Generator
) -> gpflow.models.GPModel:
    """Lengthscales around the distance of two rows, noise of 1 to 100% of the variance."""
    num_inputs = data[0].shape[1]
    lengthscales = np.sqrt(num_inputs) * np.exp(0.5 * rng.standard_normal(num_inputs))
    kernel = gpflow.kernels.SquaredExponential(lengthscales=lengthscales)
    noise = float(np.exp(rng.uniform(np.log(0.01), 0.0)))
    if centres is None:
        return gpflow.models.GPR(data, kernel, noise_variance=noise)
    return gpflow.models.SGPR(data, kernel, centres.copy(), noise_variance=noise)


def kmeans_centres(X: Array, rng: np.random.Generator) -> Array:
    """Return at most 100 centres of rows, [M, D]."""
    distinct = np.unique(X, axis=0)
    return kmeans2(distinct, min(_NUM_INDUCING, len(distinct)), minit="++", seed=rng)[0]


def fit_bayesian_ridge(X: Array, y: Array, seed: int) -> Predict:
    """Fit scikit-learn's BayesianRidge, whose predictive deviations are its own."""
    inputs = Standardiser.fit(X)
    model = import_optional("sklearn.linear_model", "cli").BayesianRidge()
    model.fit(inputs.transform(X), y)
    return lambda X: NormalPrediction(*model.predict(inputs.transform(X), return_std=True))


def fit_hist_gb(X: Array, y: Array, seed: int) -> Predict:
    """Fit scikit-learn's HistGradientBoostingRegressor; its residuals are those of five folds."""
    ensemble, selection = (
        import_optional(f"sklearn.{name}", "cli") for name in ("ensemble", "model_selection")
    )
    model = ensemble.HistGradientBoostingRegressor(random_state=seed)
    folds = selection.KFold(_NUM_FOLDS, shuffle=True, random_state=seed)
    residuals = y - selection.cross_val_predict(model, X, y, cv=folds)
    model.fit(X, y)
    deviation = _root_mean_square(residuals)
    return lambda X: NormalPrediction(model.predict(X), deviation)


def fit_random_forest(X: Array, y: Array, seed: int) -> Predict:
    """Fit scikit-learn's RandomForestRegressor; its residuals are out-of-bag."""
    ensemble = import_optional("sklearn.ensemble", "cli")
    model = ensemble.RandomForestRegressor(oob_score=True, random_state=seed).fit(X, y)
    deviation = _root_mean_square(y - model.oob_prediction_)
    return lambda X: NormalPrediction(model.predict(X), deviation)


def fit_ngboost(X: Array, y: Array, seed: int) -> Predict:
    """Fit NGBoost's regressor (Duan et al., 2020), whose normal distribution is its own."""
    ngboost = import_optional("ngboost", "rivals")
    model = ngboost.NGBRegressor(random_state=seed, verbose=False).fit(X, y)

    def predict(X: Array) -> NormalPrediction:
        parameters = model.pred_dist(X).params
        return NormalPrediction(parameters["loc"], parameters["scale"])

    return predict


def _root_mean_square(residuals: Array) -> float:
    return float(np.sqrt(np.mean(np.square(residuals))))
