"""What deep Wishart processes are compared with. Each takes X [N, D], y [N] and a seed.

What it returns takes inputs to a normal distribution of each row, or for classification to
probabilities [N, C] in the order of the class indices.
"""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import numpy as np
import tensorflow as tf
from scipy.cluster.vq import kmeans2

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation.baselines import train_sparse_classifier
from gpflow_dwp.evaluation.normal_prediction import NormalPrediction
from gpflow_dwp.evaluation.sklearn_models import fit_probabilities, sklearn_class
from gpflow_dwp.likelihoods.labels import likelihood_of_labels
from gpflow_dwp.optional import import_optional

__all__ = [
    "fit_bayesian_ridge",
    "fit_forest",
    "fit_gp",
    "fit_ngboost",
    "fit_svc",
    "fit_svgp",
]

_MOST_EXACT_ROWS = 2_000
_NUM_INDUCING = 100
_NUM_STARTS = 3


def fit_gp(X: Array, y: Array, seed: int) -> Callable[[Array], NormalPrediction]:
    """Fit GPflow's GPR, or above 2,000 rows its SGPR, from three starts.

    :raises ArithmeticError: If no start leads to a finite marginal likelihood.
    """
    inputs, targets = Standardiser.fit(X), Standardiser.fit(y[:, None])
    data = inputs.transform(X), targets.transform(y[:, None])
    rng = np.random.default_rng(seed)
    centres = None if len(X) <= _MOST_EXACT_ROWS else _kmeans_centres(data[0], rng)
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


def _kmeans_centres(X: Array, rng: np.random.Generator) -> Array:
    """Return at most 100 centres of rows, [M, D]."""
    distinct = np.unique(X, axis=0)
    return kmeans2(distinct, min(_NUM_INDUCING, len(distinct)), minit="++", seed=rng)[0]


def fit_bayesian_ridge(X: Array, y: Array, seed: int) -> Callable[[Array], NormalPrediction]:
    """Fit scikit-learn's BayesianRidge, whose predictive deviations are its own."""
    inputs = Standardiser.fit(X)
    model = sklearn_class("linear_model.BayesianRidge")().fit(inputs.transform(X), y)
    return lambda X: NormalPrediction(*model.predict(inputs.transform(X), return_std=True))


def fit_forest(X: Array, y: Array, seed: int) -> Callable[[Array], NormalPrediction]:
    """Fit scikit-learn's RandomForestRegressor; its residuals are out-of-bag."""
    model = sklearn_class("ensemble.RandomForestRegressor")(oob_score=True, random_state=seed).fit(
        X, y
    )
    deviation = np.sqrt(np.mean(np.square(y - model.oob_prediction_)))
    return lambda X: NormalPrediction(model.predict(X), deviation)


def fit_ngboost(X: Array, y: Array, seed: int) -> Callable[[Array], NormalPrediction]:
    """Fit NGBoost's regressor (Duan et al., 2020), whose normal distribution is its own."""
    ngboost = import_optional("ngboost", "rivals")
    model = ngboost.NGBRegressor(random_state=seed, verbose=False).fit(X, y)

    def predict(X: Array) -> NormalPrediction:
        parameters = model.pred_dist(X).params
        return NormalPrediction(parameters["loc"], parameters["scale"])

    return predict


def fit_svc(X: Array, y: Array, seed: int) -> Callable[[Array], Array]:
    """Fit scikit-learn's SVC, calibrated as its documentation says in place of ``probability``."""
    machine = sklearn_class("svm.SVC")(random_state=seed)
    model = sklearn_class("calibration.CalibratedClassifierCV")(machine, ensemble=False)
    return fit_probabilities(model, X, y, is_scaled=True)


def fit_svgp(X: Array, y: Array, seed: int) -> Callable[[Array], Array]:
    """Fit GPflow's SVGP: Bernoulli for two classes, softmax for more."""
    inputs, num_classes = Standardiser.fit(X), int(y.max()) + 1
    scaled, is_binary = inputs.transform(X), num_classes == 2
    centres = _kmeans_centres(scaled, np.random.default_rng(seed))
    likelihood = likelihood_of_labels(num_classes)
    model, _ = train_sparse_classifier((scaled, y[:, None]), centres, likelihood, seed=seed)

    def predict(X: Array) -> Array:
        mean = np.asarray(model.predict_y(inputs.transform(X))[0], np.float64)
        return np.hstack([1.0 - mean, mean]) if is_binary else mean

    return predict
