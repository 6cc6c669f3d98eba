"""What commands say beside their results."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpflow_dwp.cli.errors import explain
from gpflow_dwp.data.table import Task

if TYPE_CHECKING:
    from gpflow_dwp.evaluation.predictions import Scores

__all__ = [
    "as_json",
    "named_scores",
    "plain",
    "prediction_names",
    "predictions_by_name",
    "scores_as_text",
]

_SCORES = {
    "elbo": ("ELBO per datum", ".3f"),
    "log_likelihood": ("log-likelihood", ".3f"),
    "crps": ("CRPS", ".4g"),  # in units of any size
    "rmse": ("RMSE", ".4g"),
    "error_rate": ("error rate", ".4g"),
    "r2": ("R²", ".3f"),
    "ece": ("ECE", ".3f"),
    "seconds": ("seconds", ".1f"),
}
"""Scores by their names in results: titles, and how they are shown."""


def as_json(values: Any) -> str:
    """Return values as one line of JSON."""
    return json.dumps(plain(values), allow_nan=False)


def plain(values: Any) -> Any:
    """Return what JSON can hold: None, its null, for numbers that are not finite."""
    if hasattr(values, "_asdict"):
        values = values._asdict()
    if isinstance(values, dict):
        return {name: plain(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [plain(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


def prediction_names(target: str, classes: Sequence[str] | None) -> list[str]:
    """Return what the columns of predictions are called."""
    parts: tuple[str, ...] = ("mean", "sd", "lower_95", "upper_95")
    if classes is not None:
        parts = ("predicted", *(f"probability_{label}" for label in classes))
    return [f"{target}_{part}" for part in parts]


def predictions_by_name(found: Any, target: str, classes: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns of what :func:`gpflow_dwp.evaluation.predict` found, by their names."""
    if classes is None:
        values: list[Any] = [found.mean, found.deviation, found.lower, found.upper]
    else:
        values = [[classes[label] for label in found.labels], *found.probabilities.T]
    return dict(zip(prediction_names(target, classes), values, strict=True))


def named_scores(scores: Scores | Exception, task: Task) -> dict[str, Any]:
    """Return scores as plain values, each with its name in results; of an error what it says."""
    if isinstance(scores, Exception):
        return {"failed": explain(scores)[1]}
    names = {"error": "rmse" if task == "regression" else "error_rate"}
    return {
        names.get(name, name): value
        for name, value in scores._asdict().items()
        if value is not None or name == "elbo"
    }


def scores_as_text(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of what :func:`named_scores` gives, by model."""
    from tabulate import tabulate

    known = {
        name: _SCORES[name] for name in _SCORES if any(name in each for each in scores.values())
    }
    rows = [
        [
            f"{model} (failed)" if "failed" in score else model,
            *(
                "-" if score.get(x) is None else format(score[x], how)
                for x, (_, how) in known.items()
            ),
        ]
        for model, score in scores.items()
    ]
    headers = ["model", *(title for title, _ in known.values())]
    right = ["right"] * len(known)
    return tabulate(rows, headers, disable_numparse=True, colalign=["left", *right])
