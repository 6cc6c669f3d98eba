"""What a deep model has to beat: linear models, boosting, GPflow's sparse Gaussian processes."""

from __future__ import annotations

import time
from collections.abc import Callable

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras
from gpflow.likelihoods import Likelihood
from scipy import stats

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation.metrics import mixture_crps
from gpflow_dwp.evaluation.normal_prediction import LEVELS, quantile_crps
from gpflow_dwp.evaluation.scores import Scores
from gpflow_dwp.evaluation.sklearn_models import Fit, fit_boosting, fit_boosting_classifier
from gpflow_dwp.optional import import_optional

__all__ = [
    "boosting_scores",
    "gp_scores",
    "linear_scores",
    "logistic_scores",
    "simple_scores",
    "train_sparse_classifier",
]

_MOST_EXACT_ROWS = 1_000
_SCIPY_ITERATIONS = 200
_ADAM_STEPS = 1_000
_BATCH_SIZE = 1_000
_LEAST_PROBABILITY = 1e-15


def simple_scores(
    train: tuple[Array, Array],
    test: tuple[Array, Array],
    inducing_inputs: Array,
    likelihood: Likelihood | None = None,
    *,
    seed: int = 0,
) -> dict[str, Scores]:
    """Train a linear model, boosting and a GP, and return their scores by name.

    Of numbers the GP is exact up to 1,000 rows.

    :param train: X [N, D] and Y [N, 1].
    :param test: Test rows, in the same form.
    :param inducing_inputs: Where the sparse GP's inducing inputs start, [M, D].
    :param likelihood: None for regression; otherwise that of labels.
    :param seed: For minibatches, folds, and TensorFlow's global seed.
    :raises ImportError: If scikit-learn is not installed.
    """
    is_regression = likelihood is None
    is_exact = is_regression and len(train[0]) <= _MOST_EXACT_ROWS
    sparse = f"sparse GP (GPflow's {'SGPR' if is_regression else 'SVGP'})"
    linear = linear_scores if is_regression else logistic_scores
    return {
        f"{'linear' if is_regression else 'logistic'} regression": linear(train, test),
        "gradient boosting": boosting_scores(train, test, is_regression=is_regression, seed=seed),
        "exact GP (GPflow's GPR)" if is_exact else sparse: gp_scores(
            train, test, None if is_exact else inducing_inputs, likelihood, seed=seed
        ),
    }


def linear_scores(train: tuple[Array, Array], test: tuple[Array, Array]) -> Scores:
    """Scores of Bayesian linear regression (scikit-learn's ``BayesianRidge``).

    Precisions of noise and weights maximise the marginal likelihood, which is exact here.

    :param train: X [N, D] and Y [N, 1].
    :param test: Test rows, in the same form.
    :raises ImportError: If scikit-learn is not installed.
    """
    linear_model = import_optional("sklearn.linear_model", "cli")
    start = time.perf_counter()
    # Older versions of scikit-learn have the right deviations for centred inputs only.
    centre = train[0].mean(axis=0)
    model = linear_model.BayesianRidge(compute_score=True).fit(train[0] - centre, train[1][:, 0])
    seconds = time.perf_counter() - start
    mean, deviation = model.predict(test[0] - centre, return_std=True)
    return _normal_scores(
        float(model.scores_[-1]) / len(train[0]), mean, deviation, test[1][:, 0], seconds
    )


def logistic_scores(train: tuple[Array, Array], test: tuple[Array, Array]) -> Scores:
    """Scores of logistic regression (scikit-learn's, with its default penalty).

    :param train: X [N, D] and class indices Y [N, 1].
    :param test: Test rows, in the same form.
    :raises ImportError: If scikit-learn is not installed.
    """
    linear_model = import_optional("sklearn.linear_model", "cli")
    start = time.perf_counter()
    model = linear_model.LogisticRegression(max_iter=1_000).fit(train[0], train[1][:, 0])
    seconds = time.perf_counter() - start
    log_probabilities = model.predict_log_proba(test[0])
    labels = test[1][:, 0].astype(int)
    return Scores.of_labels(
        labels,
        np.exp(log_probabilities),
        log_likelihood=float(log_probabilities[np.arange(len(labels)), labels].mean()),
        seconds=seconds,
    )


def boosting_scores(
    train: tuple[Array, Array], test: tuple[Array, Array], *, is_regression: bool, seed: int = 0
) -> Scores:
    """Scores of scikit-learn's boosting on histograms.

    :param train: X [N, D] and Y [N, 1].
    :param test: Test rows, in the same form.
    :raises ImportError: If scikit-learn is not installed.
    """
    (X, Y), (test_X, test_Y) = train, test
    start = time.perf_counter()
    fit: Fit = fit_boosting if is_regression else fit_boosting_classifier
    predict = fit(X, Y[:, 0], seed)
    seconds = time.perf_counter() - start
    predicted, targets = predict(test_X), test_Y[:, 0]
    if is_regression:
        return Scores.of_numbers(
            targets,
            predicted.mean(),
            crps=quantile_crps(targets, predicted.quantiles(LEVELS)),
            log_likelihood=float(predicted.log_density(targets).mean()),
            seconds=seconds,
        )
    chosen = predicted[np.arange(len(targets)), targets.astype(int)]
    log_likelihood = float(np.log(np.maximum(chosen, _LEAST_PROBABILITY)).mean())
    return Scores.of_labels(targets, predicted, log_likelihood=log_likelihood, seconds=seconds)


def gp_scores(
    train: tuple[Array, Array],
    test: tuple[Array, Array],
    inducing_inputs: Array | None,
    likelihood: Likelihood | None = None,
    *,
    seed: int = 0,
) -> Scores:
    """Scores of GPflow's GP with a squared exponential kernel and one lengthscale per input.

    Regression is ``gpflow.models.GPR`` or ``SGPR``, trained by L-BFGS; with a likelihood it is
    ``gpflow.models.SVGP``, trained by Adam.

    :param train: X [N, D] and Y [N, 1].
    :param test: Test rows, in the same form.
    :param inducing_inputs: Where inducing inputs start, [M, D]; None for an exact regression.
    :param likelihood: None for regression with Gaussian noise; otherwise that of labels.
    :param seed: For SVGP's minibatches, and TensorFlow's global seed.
    """
    tf.random.set_seed(seed)  # some likelihoods draw from the global generator
    start = time.perf_counter()
    if likelihood is None:
        kernel = gpflow.kernels.SquaredExponential(lengthscales=np.ones(train[0].shape[1]))
        noise = float(np.exp(-4.0))
        if inducing_inputs is None:
            model = gpflow.models.GPR(train, kernel, noise_variance=noise)
        else:
            points = inducing_inputs.copy()
            model = gpflow.models.SGPR(train, kernel, points, noise_variance=noise)
        gpflow.optimizers.Scipy().minimize(
            model.training_loss_closure(compile=False),
            model.trainable_variables,
            options={"maxiter": _SCIPY_ITERATIONS},
            tf_fun_args={"autograph": False},
        )
        elbo = float(model.maximum_log_likelihood_objective())
    else:
        points = train[0] if inducing_inputs is None else inducing_inputs
        model, elbo = train_sparse_classifier(train, points, likelihood, seed=seed)
    seconds = time.perf_counter() - start
    elbo /= len(train[0])
    mean, variance = (moment.numpy() for moment in model.predict_y(test[0]))
    if likelihood is None:
        deviation = np.sqrt(variance[:, 0])
        return _normal_scores(elbo, mean[:, 0], deviation, test[1][:, 0], seconds)
    probabilities = mean if mean.shape[1] > 1 else np.hstack([1.0 - mean, mean])
    return Scores.of_labels(
        test[1][:, 0],
        probabilities,
        log_likelihood=_held_out_density(model, test),
        seconds=seconds,
        elbo=elbo,
    )


def train_sparse_classifier(
    train: tuple[Array, Array],
    inducing_inputs: Array,
    likelihood: Likelihood,
    *,
    seed: int = 0,
) -> tuple[gpflow.models.SVGP, float]:
    """Train GPflow's SVGP on labels by Adam, as :func:`gp_scores` does.

    :param train: X [N, D] and Y [N, 1].
    :param inducing_inputs: Where inducing inputs start, [M, D].
    :param likelihood: That of the labels.
    :param seed: For the minibatches, and TensorFlow's global seed.
    :return: The model, and an estimate of its bound, in nats.
    """
    tf.random.set_seed(seed)
    model = gpflow.models.SVGP(
        gpflow.kernels.SquaredExponential(lengthscales=np.ones(train[0].shape[1])),
        likelihood,
        inducing_inputs.copy(),
        num_latent_gps=likelihood.latent_dim or 1,
        num_data=len(train[0]),
    )
    targets = train[1].astype(np.int32) if _is_softmax(model.likelihood) else train[1]
    batch_size = min(_BATCH_SIZE, len(train[0]))
    dataset = tf.data.Dataset.from_tensor_slices((train[0], targets))
    batches = iter(dataset.shuffle(len(targets), seed=seed).repeat().batch(batch_size))
    loss: Callable[[], tf.Tensor] = model.training_loss_closure(batches)
    optimizer = tf_keras.optimizers.Adam(1e-2)
    for _ in range(_ADAM_STEPS):
        optimizer.minimize(loss, model.trainable_variables)
    losses = [float(loss()) for _ in range(20)]
    return model, -float(np.mean(losses))


def _held_out_density(model: gpflow.models.GPModel, test: tuple[Array, Array]) -> float:
    targets = test[1].astype(np.int32) if _is_softmax(model.likelihood) else test[1]
    return float(tf.reduce_mean(model.predict_log_density((test[0], targets))))


def _is_softmax(likelihood: Likelihood) -> bool:
    return isinstance(likelihood, gpflow.likelihoods.Softmax)


def _normal_scores(
    elbo: float, mean: Array, deviation: Array, target: Array, seconds: float
) -> Scores:
    return Scores.of_numbers(
        target,
        mean,
        crps=mixture_crps(target, mean[None], np.square(deviation)[None]),
        log_likelihood=float(stats.norm.logpdf(target, mean, deviation).mean()),
        seconds=seconds,
        elbo=elbo,
    )
