"""Labels that a likelihood does not have are refused, and those that it has are taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
from faults.conftest import some
from faults.outcomes import Tally, attempt

from gpflow_dwp import build_deep_wishart_process, fit

PART = "bad labels"
IN_SHORT = 30
ROWS = 6
X = np.linspace(-1.0, 1.0, ROWS)[:, None]


def column(*values: object) -> np.ndarray:
    return np.resize(np.array(values), ROWS)[:, None]


# Of each likelihood, labels that are its own, and what else it can do with.
LIKELIHOODS: dict[str, tuple[Callable[[], Any], np.ndarray, set[str]]] = {
    "Gaussian": (gpflow.likelihoods.Gaussian, column(0.5, -1.5), {"*"}),
    "StudentT": (gpflow.likelihoods.StudentT, column(0.5, -1.5), {"*"}),
    "Bernoulli": (gpflow.likelihoods.Bernoulli, column(0.0, 1.0), {"0 and 1"}),
    "Poisson": (
        gpflow.likelihoods.Poisson,
        column(0.0, 3.0),
        {"0 and 1", "three classes", "classes from 1", "counts", "one-hot", "two columns"},
    ),
    "Exponential": (
        gpflow.likelihoods.Exponential,
        column(0.5, 2.0),
        {
            "0 and 1",
            "three classes",
            "classes from 1",
            "counts",
            "fractions",
            "positive",
            "from 0",
            "to 1",
            "nearly classes",
            "one-hot",
            "two columns",
        },
    ),
    "Gamma": (
        gpflow.likelihoods.Gamma,
        column(0.5, 2.0),
        {"classes from 1", "fractions", "positive", "to 1"},
    ),
    "Beta": (gpflow.likelihoods.Beta, column(0.25, 0.75), {"fractions"}),
    "Ordinal": (
        lambda: gpflow.likelihoods.Ordinal(np.array([-0.5, 0.5])),
        column(0.0, 1.0, 2.0),
        {"0 and 1", "three classes"},
    ),
    "MultiClass": (
        lambda: gpflow.likelihoods.MultiClass(3),
        column(0.0, 1.0, 2.0),
        {"0 and 1", "three classes"},
    ),
    "Softmax": (
        lambda: gpflow.likelihoods.Softmax(3),
        column(0.0, 1.0, 2.0),
        {"0 and 1", "three classes"},
    ),
}
LABELS: dict[str, np.ndarray] = {
    "0 and 1": column(0.0, 1.0),
    "from 0": column(0.0, 0.5),
    "to 1": column(0.5, 1.0),
    "-1 and 1": column(-1.0, 1.0),
    "three classes": column(0.0, 1.0, 2.0),
    "classes from 1": column(1.0, 2.0, 3.0),
    "counts": column(0.0, 7.0),
    "fractions": column(0.25, 0.5),
    "positive": column(0.5, 2.5),
    "negative": column(-0.5, -2.5),
    "nearly classes": column(0.0, 1.0 + 1e-9, 2.0),
    "nan": column(0.0, np.nan),
    "inf": column(1.0, np.inf),
    "one-hot": np.eye(3)[np.arange(ROWS) % 3],
    "two columns": np.column_stack([column(0.0, 1.0)] * 2),
    "no column": np.zeros([ROWS, 0]),
    "text": column("a", "b"),
    "complex": column(0.5 + 1j, 1.0),
    "dates": column(np.datetime64("2020-01-01"), np.datetime64("2021-01-01")),
}
NEVER = {"nan", "inf", "no column", "text", "complex", "dates"}
# A Gaussian model has as many outputs as Y has columns: then the labels fit where they are built.
MATRICES = {"one-hot", "two columns"}


def build(name: str, Y: np.ndarray) -> Any:
    return build_deep_wishart_process(
        (X, Y), 1, num_inducing=2, likelihood=LIKELIHOODS[name][0](), output="pseudo_targets"
    )


def built_with(name: str, Y: np.ndarray) -> float:
    return float(build(name, Y).elbo((X, Y)))


def trained_on(name: str, Y: np.ndarray) -> float:
    model = build(name, LIKELIHOODS[name][1])
    return float(fit(model, (X, Y), 1, progress=False).elbo[0])


def bound_of(name: str, Y: np.ndarray) -> float:
    return float(build(name, LIKELIHOODS[name][1]).elbo((X, Y)))


def density_of(name: str, Y: np.ndarray) -> float:
    model = build(name, LIKELIHOODS[name][1])
    return float(np.sum(model.predict_log_density((X, Y))))


WAYS = (built_with, trained_on, bound_of, density_of)


@pytest.mark.usefixtures("quick")
def test_labels(tally: Tally, is_long: bool) -> None:
    rows = [(way, name, kind) for way in WAYS for name in LIKELIHOODS for kind in LABELS]
    for way, name, kind in some(rows, is_long, IN_SHORT):
        fine = LIKELIHOODS[name][2]
        is_fine = kind not in NEVER and (kind in fine or "*" in fine)
        if kind in MATRICES and way is not built_with:
            is_fine = False
        outcome = attempt(lambda: way(name, LABELS[kind]), ValueError)  # noqa: B023 (called here)
        what = f"{way.__name__}: {name}, {kind}"
        if name == "Ordinal" and (is_fine or kind in MATRICES):
            continue  # GPflow's own bound is NaN with this TensorFlow
        if not is_fine:
            tally.add_refusal(outcome, rf"\bY\b|data\[1\]|{name}|labels?\b", what)
        elif outcome.code == 0 and np.isfinite(float(outcome.output)):
            tally.add("held", what)
        else:
            tally.add("silently wrong", f"{what}: {outcome}")
