"""One cell in this process: its metrics, its curve, and going on after an interruption."""

from __future__ import annotations

import csv
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_archive import tiny_cell

from gpflow_dwp.data import load_uci
from gpflow_dwp.lab.study import execution
from gpflow_dwp.lab.study.cell import RECIPE
from gpflow_dwp.lab.study.execution import run_cell
from gpflow_dwp.lab.study.scoring import whole_data_bound
from gpflow_dwp.objectives import Estimator
from gpflow_dwp.training import fit

TIMES = {"seconds_per_step", "seconds_per_epoch", "training_seconds"}
METRICS = {
    "elbo",
    "elbo_standard_error",
    "test_log_likelihood",
    "rmse",
    "crps",
    "coverage_50",
    "coverage_90",
    "coverage_95",
} | TIMES


def of_recipe(number: int, elbo: float) -> Any:
    """The bound of a cell by a recipe: where it changes, defaults, start or gradients have.

    Then results that are kept under the key of a cell are not what this version would give for it.
    """
    assert number == RECIPE
    return pytest.approx(elbo, rel=1e-6)


def test_metrics_and_curve(archive: Path, tmp_path: Path) -> None:
    cell, reports = tiny_cell(batch_size=16, kl_annealing_steps=3), []
    curve = tmp_path / "curve.csv"

    metrics = run_cell(
        cell, curve=curve, uci_folder=archive, report=lambda *report: reports.append(report)
    )

    assert set(metrics) == METRICS
    assert metrics["elbo"] == of_recipe(5, -11.92557283)
    assert all(type(value) is float and np.isfinite(value) for value in metrics.values())
    np.testing.assert_allclose(metrics["seconds_per_epoch"], 2.0 * metrics["seconds_per_step"])
    split = load_uci("yacht", 0, folder=archive)
    model = cell.build(split.train)
    history = fit(
        model,
        split.train,
        12,
        batch_size=16,
        protocol=cell.protocol,
        kl_annealing_steps=3,
        seed=0,
        progress=False,
    )
    np.testing.assert_allclose(metrics["elbo"], model.elbo(split.train) / 32, rtol=1e-8)
    assert [step for step, _ in reports] == [3, 6, 9, 12]
    np.testing.assert_allclose(reports[-1][1], history.elbo_per_datum[9:].mean(), rtol=1e-8)
    with curve.open() as file:
        header, *rows = csv.reader(file)
    assert header == ["step", "elbo_per_datum"]
    np.testing.assert_allclose([float(row[1]) for row in rows], history.elbo_per_datum, rtol=1e-8)
    assert [int(row[0]) for row in rows] == list(range(1, 13))
    assert [path.name for path in tmp_path.iterdir()] == ["curve.csv"]


def test_a_long_curve_is_thinned_and_float32_is_trained(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "_POINTS_OF_CURVE", 4)
    curve = tmp_path / "curve.csv"

    metrics = run_cell(tiny_cell(dtype="float32"), curve=curve, uci_folder=archive)

    assert np.isfinite(metrics["elbo"])
    assert [line.split(",")[0] for line in curve.read_text().splitlines()] == [
        "step",
        "3",
        "6",
        "9",
        "12",
    ]


def test_an_interrupted_cell_goes_on(archive: Path, tmp_path: Path) -> None:
    cell = tiny_cell(model="LV-GP", protocol="cde", num_importance_samples=2)
    expected = run_cell(cell, uci_folder=archive)

    def interrupt(step: int, bound: float) -> None:
        if step == 6:
            signal.raise_signal(signal.SIGINT)

    steps: list[int] = []
    with pytest.raises(KeyboardInterrupt, match="interrupted after step 6"):
        run_cell(cell, checkpoint_directory=tmp_path, uci_folder=archive, report=interrupt)
    metrics = run_cell(
        cell,
        checkpoint_directory=tmp_path,
        uci_folder=archive,
        report=lambda step, _: steps.append(step),
    )

    assert expected["elbo"] == of_recipe(5, -23.91244344)
    assert steps == [9, 12]
    for name in METRICS - TIMES:
        assert metrics[name] == expected[name]


def test_a_cell_takes_its_importance_samples(archive: Path) -> None:
    cell = tiny_cell(options={"latent_dim": 1}, num_importance_samples=3)
    split = load_uci("yacht", 0, folder=archive)

    metrics = run_cell(cell, uci_folder=archive)

    model = cell.build(split.train)
    fit(model, split.train, 12, protocol="papers", estimator=Estimator(3), progress=False)
    bound, _ = whole_data_bound(model, split.train, estimator=Estimator(3))
    np.testing.assert_allclose(metrics["elbo"], bound, rtol=1e-8)
    assert bound > whole_data_bound(model, split.train)[0]


def test_conditional_density_estimation(archive: Path) -> None:
    cell = tiny_cell(model="LV-DWP", protocol="cde", num_prediction_samples=20)

    metrics = run_cell(cell, uci_folder=archive)

    more = {"log_likelihood_standardised", "log_likelihood_kernel", "shapiro_wilk"}
    assert set(metrics) == METRICS | more
    offset = load_uci("yacht", 0, folder=archive).targets.log_density_offset
    np.testing.assert_allclose(
        metrics["log_likelihood_standardised"], metrics["test_log_likelihood"] - offset
    )
    assert np.isfinite(metrics["log_likelihood_kernel"])
    assert 0.0 < metrics["shapiro_wilk"] <= 1.0


def test_fast_training_of_a_deep_model(archive: Path) -> None:
    metrics = run_cell(tiny_cell(depth=2, model="A", protocol="fast"), uci_folder=archive)

    assert metrics["elbo"] == of_recipe(5, -12.46981019)
