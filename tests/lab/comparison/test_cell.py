"""Cells: what tells them apart, which there are, and one from its table to its scores."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from package_source import ROOT
from study_archive import write_archive

from gpflow_dwp.files import unseal
from gpflow_dwp.lab.comparison import cell as module
from gpflow_dwp.lab.comparison.cell import ComparisonCell, make_comparison, run_comparison_cell
from gpflow_dwp.lab.comparison.models import COMPARED_MODELS, ComparedModel, estimator_class
from gpflow_dwp.lab.comparison.scores import METRICS
from gpflow_dwp.lab.comparison.tables import load_split

CELL = ComparisonCell("yacht", "dwp", "dwp", 3, (("depth", 2),), (("num_steps", 7),))


def test_a_cell_is_what_it_was_written_as() -> None:
    fields = json.loads(json.dumps(CELL.to_dict()))

    assert ComparisonCell.from_dict(fields) == CELL
    assert ComparisonCell.from_dict(fields).key == CELL.key
    assert set(CELL.place) <= set(fields)
    assert CELL.title == "yacht, dwp, split 3"


def test_keys_stay_what_they_are() -> None:
    """Results that are kept would be run again if they changed, or were damaged."""
    assert ComparisonCell("yacht", "exact-gp", "exact-gp", 0).key == "2209e9afa606b668"
    lines = (ROOT / "ci/results/comparison/results.jsonl").read_text().splitlines()
    for record in map(json.loads, lines):
        assert ComparisonCell.from_dict(unseal(record)["cell"]).key == record["key"]


@pytest.mark.parametrize(
    "change",
    [
        {"table": "boston"},
        {"label": "other"},
        {"split": 4},
        {"settings": {"depth": 3}},
        {"defaults": {"num_steps": 8}},
    ],
)
def test_whatever_changes_is_another_cell(change: dict[str, Any]) -> None:
    """Results of other defaults must not stand in for those of today's."""
    assert ComparisonCell.from_dict(CELL.to_dict() | change).key != CELL.key


def test_a_cell_with_other_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="missing fields"):
        ComparisonCell.from_dict({"table": "yacht"})


def test_models_and_splits_are_left_out_where_there_are_none() -> None:
    models = ["exact-gp", "logistic", "hist-gb"]
    cells = make_comparison(["wine", "protein", "yacht"], models, [4, 5])

    assert [(c.split, c.table, c.model) for c in cells] == [
        (4, "wine", "logistic"),
        (4, "wine", "hist-gb"),
        (4, "protein", "exact-gp"),
        (4, "protein", "hist-gb"),
        (4, "yacht", "exact-gp"),
        (4, "yacht", "hist-gb"),
        (5, "wine", "logistic"),
        (5, "wine", "hist-gb"),
        (5, "yacht", "exact-gp"),
        (5, "yacht", "hist-gb"),
    ]
    assert all(cell.label == cell.model and not cell.settings for cell in cells)


def test_ours_has_settings_and_a_label() -> None:
    pytest.importorskip("sklearn", minversion="1.6")
    settings = {"num_steps": 5, "depth": 2}
    (first,) = make_comparison(["yacht"], ["dwp"], [0], settings=settings)
    (second,) = make_comparison(["wine"], ["dwp"], [0], settings=settings, label="short")
    (plain,) = make_comparison(["yacht"], ["dwp"], [0])

    assert (first.label, second.label, plain.label) == ("dwp-num_steps=5-depth=2", "short", "dwp")
    assert first.settings == (("depth", 2), ("num_steps", 5))
    arguments = estimator_class("regression")().get_params()
    assert set(dict(plain.defaults)) == set(arguments)
    assert dict(plain.defaults)["num_steps"] == arguments["num_steps"]
    assert set(dict(first.defaults)) == set(arguments) - {"depth", "num_steps"}


@pytest.mark.parametrize(
    ("tables", "models", "splits", "more", "message"),
    [
        ([], ["svc"], [0], {}, r"tables must hold each of at least one value once, got \[\]"),
        (["wine"], ["svc", "svc"], [0], {}, "models must hold each"),
        (["wine"], ["svc"], [], {}, "splits must hold each"),
        (["nope"], ["svc"], [0], {}, "tables must be one of .* got 'nope'"),
        (["wine"], ["nope"], [0], {}, "models must be one of .* got 'nope'"),
        (["wine"], ["svc"], [0.5], {}, r"splits\[0\] must be an integer"),
        (["wine"], ["exact-gp"], [0], {}, "there is nothing to compare"),
        (["protein"], ["exact-gp"], [5], {}, "tables protein have no split 5"),
        (["wine"], ["svc"], [0], {"label": "x"}, "settings and label are those of dwp, got"),
        (["wine"], ["svc"], [0], {"settings": {"depth": 2}}, "are those of dwp"),
        (["wine"], ["dwp"], [0], {"settings": {"nope": 2}}, "DeepWishartClassifier takes no 'n"),
        (["yacht"], ["dwp"], [0], {"settings": {"nope": 2}}, "DeepWishartRegressor takes no 'n"),
        (["wine"], ["dwp"], [0], {"label": "svc"}, "label must be a name of its own"),
        (["wine"], ["dwp"], [0], {"label": " "}, "label must be a name of its own"),
        (["wine"], ["dwp"], [0], {"label": "a|b"}, "label must be a name of its own"),
    ],
)
def test_refusals(
    tables: list[str], models: list[str], splits: list[Any], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make_comparison(tables, models, splits, **more)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": "nope"}, "table must be one of"),
        ({"model": "nope"}, "model must be one of"),
        ({"model": "svc"}, "model svc is not for regression, as yacht is"),
        ({"split": 20}, "split must be an integer from 0 to 19 for yacht, got 20"),
    ],
)
def test_cells_that_there_are_not(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ComparisonCell.from_dict(CELL.to_dict() | change)


FEW = (
    *(("depth", 1), ("kernel", "SquaredExponential"), ("noise", "gaussian"), ("num_inducing", 5)),
    *(("num_prediction_samples", 3), ("num_steps", 2), ("warp", False)),
)


def test_scores_are_those_of_the_test_rows() -> None:
    cell = ComparisonCell("diabetes", "bayesian-ridge", "bayesian-ridge", 6)

    metrics = run_comparison_cell(cell.to_dict(), checkpoint_directory="unused", curve=None)

    assert list(metrics) == list(METRICS["regression"])
    split = load_split("diabetes", 6)
    fitted = COMPARED_MODELS["bayesian-ridge"].fits["regression"](split.X_train, split.y_train, 6)
    mean, deviation = fitted(split.X_test).mean(), fitted(split.X_test).deviations
    errors = split.y_test - mean
    assert metrics["rmse"] == pytest.approx(np.sqrt(np.mean(np.square(errors))))
    density = -0.5 * np.square(errors / deviation) - np.log(deviation * np.sqrt(2.0 * np.pi))
    assert metrics["nlpd"] == pytest.approx(-density.mean())


def test_the_estimator_runs_with_its_settings(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", minversion="1.6")
    folder = write_archive(tmp_path / "archive")

    metrics = run_comparison_cell(
        ComparisonCell("yacht", "dwp", "quick", 0, FEW).to_dict(), uci_folder=folder
    )

    assert list(metrics) == list(METRICS["regression"])
    assert np.isfinite(list(metrics.values())).all()
    assert metrics["rmse"] < 3.0 * np.std(load_split("yacht", 0, uci_folder=folder).y_test)


def test_times_are_of_the_processor_and_without_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each second of the stand-in's counts where it belongs, those of imports nowhere."""
    clock = 0.0

    def spend(seconds: float) -> None:
        nonlocal clock
        clock += seconds

    class StandIn:
        def mean(self) -> np.ndarray:
            spend(10.0)
            return np.zeros(45)

        def quantiles(self, levels: np.ndarray) -> np.ndarray:
            spend(100.0)
            return np.zeros((45, len(levels)))

        def log_density(self, y: np.ndarray) -> np.ndarray:
            spend(1_000.0)
            return np.zeros(45)

    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> object:
        spend(1.0)
        return lambda inputs: StandIn()

    model = ComparedModel({"regression": fit})
    monkeypatch.setattr(module, "COMPARED_MODELS", {"bayesian-ridge": model})
    monkeypatch.setattr(ComparedModel, "load", lambda self: spend(1e6))
    monkeypatch.setattr(time, "process_time", lambda: clock)

    metrics = run_comparison_cell(ComparisonCell("diabetes", "bayesian-ridge", "x", 0).to_dict())

    assert (metrics["fit_seconds"], metrics["predict_seconds"]) == (1.0, 110.0)
