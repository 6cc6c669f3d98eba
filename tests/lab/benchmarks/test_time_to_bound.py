"""When a bound stays above a level, and what is said of the ways to train."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from study_archive import write_archive

from gpflow_dwp.lab.benchmarks import time_to_bound
from gpflow_dwp.lab.benchmarks.measurement import Subject
from gpflow_dwp.lab.benchmarks.time_to_bound import (
    BoundRun,
    BoundWatch,
    benchmark_bound,
    bound_figures,
    prepare_run,
    prepare_search,
    printed_bound,
)
from gpflow_dwp.training import TrainingProgress


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
    watch = BoundWatch(-1.0, 1_000, num_data=10)

    for index, bound in enumerate(bounds):
        event = TrainingProgress(50 * (index + 1), 500, 10.0 * bound, model=None, seconds=0.0)  # type: ignore[arg-type]
        assert not watch(event)

    assert watch.run.step == step and (watch.run.seconds is None) == (step is None)
    assert watch.run.last_bound == bounds[-1] and watch.run.last_step == 50 * len(bounds)


@pytest.mark.parametrize(
    ("level", "num_steps", "hold", "ends"), [(-1e6, 400, 100, (50, 150)), (1e6, 60, 10, (None, 60))]
)
def test_a_run_ends_when_it_has_held_or_below(
    tmp_path: Path, level: float, num_steps: int, hold: int, ends: tuple[int | None, int]
) -> None:
    folder = str(write_archive(tmp_path))

    run = prepare_run(("yacht", 0, folder, "A", 1, 0), "fast", num_steps, level, hold)(1)

    assert (run.step, run.last_step) == ends and np.isfinite(run.last_bound)
    assert (run.seconds is None) == (run.step is None)
    assert (run.seconds or 0.0) < run.all_seconds


@pytest.mark.parametrize(("level", "step"), [(-1e6, 3), (1e6, None)])
def test_a_search_has_reached_the_bound_at_its_end_or_not(
    tmp_path: Path, level: float, step: int | None
) -> None:
    folder = str(write_archive(tmp_path))

    run = prepare_search(("yacht", 0, folder, "A", 2, 0), 3, level)(1)

    assert run.step == step and run.last_step == 3 and np.isfinite(run.last_bound)
    assert run.seconds == (None if step is None else run.all_seconds)


def test_each_way_runs_beside_the_papers_protocol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_archive(tmp_path)
    asked, lines = {}, list[str]()

    @contextlib.contextmanager
    def started(subject: Subject, threads: int) -> Iterator[SimpleNamespace]:
        name = subject.title.split()[-1]
        asked[name] = subject.arguments[-3:]
        run = BoundRun(50, {"fast": 0.5, "select_model": 0.2, "papers": 10.0}[name], 60, -1.0, 20.0)
        answer = {"value": [*run]}
        yield SimpleNamespace(send=lambda: None, receive=lambda: answer, ask=lambda: answer)

    monkeypatch.setattr(time_to_bound, "start", started)

    result = benchmark_bound(
        level=-1e6,
        num_steps=60,
        search_steps=50,
        papers_steps=70,
        hold=10,
        uci_folder=folder,
        report=lines.append,
    )

    place = ("yacht", 0, str(folder.resolve()), "A", 2, 0)
    assert asked == {
        "fast": (60, -1e6, 10),
        "select_model": (place, 50, -1e6),
        "papers": (70, -1e6, 10),
    }
    [(title, part)] = result.items()
    assert title == "A of depth 2 on yacht, split 0, above -1e+06"
    assert list(part.values["runs"]) == ["fast", "select_model", "papers"]
    assert lines == [f"{name}: ended after 60 steps" for name in part.values["runs"]]
    figures = {figure.name: figure for figure in part.figures}
    for name, value, at_most in (("fast", 0.05, 0.1), ("select_model", 0.02, 0.05)):
        share = figures[f"time to the bound, {name} / papers"]
        assert share.value == pytest.approx(value) and share.at_most == at_most


def test_no_ratio_where_a_run_ended_below() -> None:
    fast, papers = BoundRun(50, 1.0, 100, 0.5, 2.0), BoundRun(None, None, 100, 0.1, 10.0)

    runs = {"fast": fast, "select_model": fast, "papers": papers}
    names = {figure.name for figure in bound_figures(runs)}

    assert "fast, steps to the bound" in names and "papers, bound at the end" in names
    assert not any("/" in name or name.startswith("papers, s of") for name in names)


def test_the_level_is_that_of_print() -> None:
    assert printed_bound("yacht", 5, "A") == 1.79


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "A-whitened"}, "--level must be given: no ELBO of A-whitened of depth 2"),
        ({"level": float("nan")}, "--level must be finite, got nan"),
        ({"split": -1}, "split"),
    ],
)
def test_mistakes_cost_no_training(
    tmp_path: Path, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_to_bound, "start", pytest.fail)

    with pytest.raises(ValueError, match=message):
        benchmark_bound(uci_folder=write_archive(tmp_path), report=pytest.fail, **options)
