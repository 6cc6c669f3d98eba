"""Scores of models in the units of the user's table, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tabulate import tabulate

from gpflow_dwp.data import Standardiser, Task
from gpflow_dwp.evaluation import Scores
from gpflow_dwp.models import VariationalModel

__all__ = [
    "convert_scores",
    "error_name",
    "mean_log_density",
    "score_table",
    "scores_by_name",
    "scores_from_names",
]

Array = npt.NDArray[np.float64]


def convert_scores(scores: Scores, target: Standardiser | None) -> Scores:
    """Return scores in raw units.

    :param scores: In the model's units.
    :param target: Standardiser of the target; None for labels.
    """
    if target is None:
        return scores
    offset = target.log_density_offset
    return scores._replace(
        elbo=None if scores.elbo is None else scores.elbo + offset,
        log_likelihood=scores.log_likelihood + offset,
        error=scores.error * float(target.scale[0]),
    )


def mean_log_density(
    model: VariationalModel,
    data: tuple[Array, Array],
    target: Standardiser | None,
    *,
    num_samples: int | None = None,
    seed: int = 0,
) -> float:
    """Return the mean log predictive density, in raw units.

    :param model: A trained model.
    :param data: X [N, D] and Y [N, 1], in the model's units.
    :param target: Standardiser of the target; None for labels.
    :param num_samples: Draws that make up the mixture; None for the model's own number.
    :param seed: For the draws.
    """
    tf.random.set_seed(seed)  # some likelihoods draw from the global generator
    log_density = model.predict_log_density(data, num_samples=num_samples, seed=seed)
    offset = 0.0 if target is None else target.log_density_offset
    return float(tf.reduce_mean(log_density)) + offset


def error_name(task: Task) -> str:
    """Return what the error of a task is called in results."""
    return "rmse" if task == "regression" else "error_rate"


def scores_by_name(scores: Mapping[str, Scores], task: Task) -> dict[str, dict[str, Any]]:
    """Return the scores of models as plain values, each with its name.

    :param scores: Of models by name.
    :param task: What the models were trained for.
    """
    found = {model: score._asdict() for model, score in scores.items()}
    for values in found.values():
        values[error_name(task)] = values.pop("error")
    return found


def scores_from_names(found: Mapping[str, Mapping[str, Any]], task: Task) -> dict[str, Scores]:
    """Return the inverse of :func:`scores_by_name`.

    :raises KeyError: If a score is missing.
    :raises TypeError: If there is another.
    """
    scores = {}
    for model, values in found.items():
        plain = dict(values)
        scores[model] = Scores(error=plain.pop(error_name(task)), **plain)
    return scores


def score_table(scores: Mapping[str, Scores], task: Task) -> str:
    """Return a table of the scores of models, by name."""
    error = "test RMSE" if task == "regression" else "test error rate"
    rows = [
        [
            name,
            "-" if score.elbo is None else f"{score.elbo:.3f}",
            f"{score.log_likelihood:.3f}",
            f"{score.error:.4g}",  # in units of any size
            f"{score.seconds:.1f}",
        ]
        for name, score in scores.items()
    ]
    headers = ["model", "ELBO per datum", "test log-likelihood", error, "seconds"]
    return tabulate(rows, headers, disable_numparse=True, colalign=["left"] + ["right"] * 4)
