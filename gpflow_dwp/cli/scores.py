"""Scores of models in the units of the user's table, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tabulate import tabulate

from gpflow_dwp.base import Array
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
        crps=None if scores.crps is None else scores.crps * float(target.scale[0]),
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
    found = {}
    for model, score in scores.items():
        values = score._asdict()
        values[error_name(task)] = values.pop("error")
        missing = [name for name in ("crps", "r2", "ece") if values[name] is None]
        found[model] = {name: value for name, value in values.items() if name not in missing}
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


_COLUMNS: dict[str, tuple[str, str]] = {
    "elbo": ("ELBO per datum", ".3f"),
    "log_likelihood": ("log-likelihood", ".3f"),
    "crps": ("CRPS", ".4g"),  # in units of any size
    "error": ("", ".4g"),
    "r2": ("R²", ".3f"),
    "ece": ("ECE", ".3f"),
    "seconds": ("seconds", ".1f"),
}


def score_table(scores: Mapping[str, Scores], task: Task) -> str:
    """Return a table of the scores of models, by name: of test rows, but for the ELBO."""
    error = "RMSE" if task == "regression" else "error rate"
    shown = [
        name
        for name in _COLUMNS
        if name in ("elbo", "log_likelihood", "error", "seconds")
        or any(getattr(score, name) is not None for score in scores.values())
    ]
    rows = [[model, *(_shown(score, name) for name in shown)] for model, score in scores.items()]
    headers = ["model", *(_COLUMNS[name][0] or error for name in shown)]
    right = ["right"] * len(shown)
    return tabulate(rows, headers, disable_numparse=True, colalign=["left", *right])


def _shown(score: Scores, name: str) -> str:
    value = getattr(score, name)
    return "-" if value is None else format(value, _COLUMNS[name][1])
