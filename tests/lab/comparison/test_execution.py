"""A cell, from the table to its scores."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from study_archive import write_archive

from gpflow_dwp.lab.comparison import (
    METRICS,
    MODELS,
    ComparedModel,
    ComparisonCell,
    execution,
    load_split,
    run_comparison_cell,
)

FEW = (("num_inducing", 5), ("num_prediction_samples", 3), ("num_steps", 2))


def test_scores_are_those_of_the_test_rows() -> None:
    cell = ComparisonCell("diabetes", "bayesian-ridge", "bayesian-ridge", 6)

    metrics = run_comparison_cell(cell.to_dict(), checkpoint_directory="unused", curve=None)

    assert list(metrics) == list(METRICS["regression"])
    split = load_split("diabetes", 6)
    fitted = MODELS["bayesian-ridge"].fits["regression"](split.X_train, split.y_train, 6)
    mean, deviation = fitted(split.X_test).mean(), fitted(split.X_test).deviations
    errors = split.y_test - mean
    assert metrics["rmse"] == pytest.approx(np.sqrt(np.mean(np.square(errors))))
    density = -0.5 * np.square(errors / deviation) - np.log(deviation * np.sqrt(2.0 * np.pi))
    assert metrics["nlpd"] == pytest.approx(-density.mean())


def test_the_estimator_runs_with_its_settings(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", minversion="1.6")
    folder = write_archive(tmp_path / "archive")

    metrics = run_comparison_cell(
        ComparisonCell("yacht", "dwp", "quick", 0, FEW), uci_folder=folder
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
    monkeypatch.setattr(execution, "MODELS", {"bayesian-ridge": model})
    monkeypatch.setattr(ComparedModel, "load", lambda self: spend(1e6))
    monkeypatch.setattr(time, "process_time", lambda: clock)

    metrics = run_comparison_cell(ComparisonCell("diabetes", "bayesian-ridge", "x", 0))

    assert (metrics["fit_seconds"], metrics["predict_seconds"]) == (1.0, 110.0)
