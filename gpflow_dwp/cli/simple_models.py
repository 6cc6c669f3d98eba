"""What ``gpflow-dwp fit`` compares its model with."""

from __future__ import annotations

import time

import numpy as np

from gpflow_dwp.cli.fit_data import FitData
from gpflow_dwp.cli.fit_options import CompleteOptions
from gpflow_dwp.evaluation import Scores
from gpflow_dwp.evaluation.baselines import linear_scores, logistic_scores, sparse_gp_scores
from gpflow_dwp.evaluation.normal_prediction import LEVELS, quantile_crps
from gpflow_dwp.evaluation.sklearn_models import Fit, fit_boosting, fit_boosting_classifier
from gpflow_dwp.models import DeepKernelProcess, VariationalModel

__all__ = ["simple_scores"]

_LEAST_PROBABILITY = 1e-15


def simple_scores(
    data: FitData, model: VariationalModel, options: CompleteOptions
) -> dict[str, Scores]:
    """Train simpler models, and return their scores in raw units, by name.

    :param model: An untrained one, whose inducing points a sparse GP starts at, too.
    """
    train, test = data.standardised(data.train), data.standardised(data.test)
    if isinstance(model, DeepKernelProcess):
        points = model.inducing_variable.Z.numpy()[:, : model.num_inputs]
    else:  # which has no inducing points
        distinct = np.unique(train[0], axis=0)
        count = min(options.num_inducing or 100, len(distinct))
        points = np.random.default_rng(options.seed).choice(distinct, count, replace=False)
    is_regression = data.likelihood is None
    scores = {
        f"{'linear' if is_regression else 'logistic'} regression": (
            linear_scores(train, test) if is_regression else logistic_scores(train, test)
        ),
        "gradient boosting": _boosting_scores(data, options.seed),
        f"sparse GP (GPflow's {'SGPR' if is_regression else 'SVGP'})": sparse_gp_scores(
            train, test, points, data.likelihood, seed=options.seed
        ),
    }
    return {name: score.in_raw_units(data.target) for name, score in scores.items()}


def _boosting_scores(data: FitData, seed: int) -> Scores:
    """Scores of what ``gpflow-dwp compare`` calls ``hist-gb``, in the model's units."""
    train, test = data.standardised(data.train), data.standardised(data.test)
    start = time.perf_counter()
    fit: Fit = fit_boosting_classifier if data.target is None else fit_boosting
    predict = fit(train[0], train[1][:, 0], seed)
    seconds = time.perf_counter() - start
    predicted, targets = predict(test[0]), test[1][:, 0]
    if data.target is None:
        chosen = predicted[np.arange(len(targets)), targets.astype(int)]
        log_likelihood = float(np.log(np.maximum(chosen, _LEAST_PROBABILITY)).mean())
        return Scores.of_labels(targets, predicted, log_likelihood=log_likelihood, seconds=seconds)
    return Scores.of_numbers(
        targets,
        predicted.mean(),
        crps=quantile_crps(targets, predicted.quantiles(LEVELS)),
        log_likelihood=float(predicted.log_density(targets).mean()),
        seconds=seconds,
    )
