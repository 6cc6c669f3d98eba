"""When a bound stays above a level, and what is said of the two protocols."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_archive import NUM_ROWS, TEST_ROWS, write_archive

from gpflow_dwp.lab.benchmarks import BoundRun, benchmark_bound, printed_bound, time_to_bound
from gpflow_dwp.models import build_deep_wishart_process
from gpflow_dwp.training import TrainingProgress

ROWS = NUM_ROWS - TEST_ROWS


def train(level: float, **options: Any) -> BoundRun:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    data = X, np.sin(X[:, :1])
    model = build_deep_wishart_process(data, 1, num_inducing=5, num_samples=1)
    return time_to_bound.train_to_bound(model, data, level, **options)


@pytest.mark.parametrize(
    ("bounds", "step"),
    [
        ([-3.0, -0.5, -2.0, -0.5, -0.4, -0.9], 200),
        ([-3.0, -2.0, -0.5], 150),
        ([-0.5, -0.4, -2.0], None),
        ([-0.5, -0.4, -0.3], 50),
    ],
)
def test_the_bound_stays_above_from_the_last_passing_on(
    bounds: list[float], step: int | None
) -> None:
    watch = time_to_bound._Watch(-1.0, 1_000, num_data=10)

    for index, bound in enumerate(bounds):
        event = TrainingProgress(50 * (index + 1), 500, 10.0 * bound, model=None, seconds=0.0)  # type: ignore[arg-type]
        assert not watch(event)

    assert watch.run.step == step and (watch.run.seconds is None) == (step is None)
    assert watch.run.last_bound == bounds[-1] and watch.run.last_step == 50 * len(bounds)


def test_a_run_ends_when_it_has_held() -> None:
    run = train(-1e6, num_steps=400, hold=100)

    assert (run.step, run.last_step) == (50, 150)
    assert run.seconds is not None and 0.0 < run.seconds < run.all_seconds


def test_a_run_that_ends_below_has_no_step() -> None:
    run = train(1e6, num_steps=60, hold=10)

    assert (run.step, run.seconds, run.last_step) == (None, None, 60)
    assert np.isfinite(run.last_bound)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hold": 0}, "hold must be a positive integer, got 0"),
        ({"num_steps": 0}, "num_steps must be a positive integer, got 0"),
        ({"protocol": "slow"}, "protocol must be one of .*, got 'slow'"),
    ],
)
def test_what_cannot_be_used_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train(0.0, **options)


def test_both_protocols_run_in_processes_of_their_own(tmp_path: Path) -> None:
    lines: list[str] = []

    result = benchmark_bound(
        level=-1e6,
        num_steps=60,
        papers_steps=60,
        hold=10,
        uci_folder=write_archive(tmp_path),
        report=lines.append,
    )

    [(title, part)] = result.items()
    assert title == "A of depth 2 on yacht, split 0, above -1e+06"
    assert list(part["runs"]) == ["fast", "papers"]
    assert lines == [
        "fast: up to 60 steps",
        "papers: up to 60 steps",
        "fast: ended after 60 steps",
        "papers: ended after 60 steps",
    ]
    figures = {figure["name"]: figure for figure in part["figures"]}
    share = figures["time to the bound, fast / papers"]
    seconds = [figures[f"{name}, s of processor to the bound"]["value"] for name in part["runs"]]
    assert share["value"] == pytest.approx(seconds[0] / seconds[1]) and share["at_most"] == 0.1


def test_no_ratio_where_a_run_ended_below() -> None:
    runs = {
        "fast": BoundRun(50, 1.0, 100, 0.5, 2.0),
        "papers": BoundRun(None, None, 100, 0.1, 10.0),
    }

    names = {figure.name for figure in time_to_bound._figures(runs)}  # type: ignore[arg-type]

    assert "fast, steps to the bound" in names and "papers, bound at the end" in names
    assert not any("/" in name or name.startswith("papers, s of") for name in names)


def test_the_level_is_that_of_print() -> None:
    assert printed_bound("yacht", 5, "A") == 1.79


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "iris"}, "dataset must be one of .*, got 'iris'"),
        ({"model": "DGP"}, "model must be one of .*, got 'DGP'"),
        ({"model": "A-whitened"}, "level must be given: no ELBO of A-whitened of depth 2"),
        ({"level": float("nan")}, "level must be finite, got nan"),
        ({"depth": 0}, "depth must be a positive integer, got 0"),
        ({"split": -1}, "split"),
        ({"dataset": "sea"}, "sea"),
    ],
)
def test_mistakes_cost_no_training(
    tmp_path: Path, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_to_bound, "_run_beside_each_other", pytest.fail)

    with pytest.raises(ValueError, match=message):
        benchmark_bound(uci_folder=write_archive(tmp_path), **options)


def test_a_process_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_archive(tmp_path)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho out of luck >&2\nexit 3\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))

    with pytest.raises(RuntimeError, match="The run by protocol fast failed: out of luck"):
        benchmark_bound(level=0.0, uci_folder=folder)
