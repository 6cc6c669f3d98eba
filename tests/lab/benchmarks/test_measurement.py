"""Processes that do what they are asked, and figures from what they answer."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpflow_dwp.lab.benchmarks import _child, _peers
from gpflow_dwp.lab.benchmarks.measurement import (
    Subject,
    measure,
    ratio,
    start,
    summary,
)


def prepare_pages(size: int) -> Callable[[int], int]:
    """Touch so many bytes, and tell how often; run in a process of its own."""

    def run(times: int) -> int:
        if times < 0:
            raise OSError("out of luck")
        len(bytes(range(256)) * (size // 256))
        return times

    return run


def test_a_process_answers_as_often_as_it_is_asked() -> None:
    with start(Subject("pages", prepare_pages, [2_560])) as process:
        answers = [process.ask(times) for times in (1, 5)]
        process.send(2)
        process.send(3)
        answers += [process.receive(), process.receive()]

    assert [answer["value"] for answer in answers] == [1, 5, 2, 3]
    assert all(answer["wall"] > 0.0 and answer["peak"] is None for answer in answers)
    assert process.popen.returncode is not None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_peak_of_memory_is_beyond_what_was_there() -> None:
    size = 2**26
    with start(Subject("pages", prepare_pages, [size])) as process:
        peaks = [process.ask(memory=True)["peak"] for _ in range(2)]

    assert peaks == pytest.approx([size, size], rel=0.02)


def test_a_process_that_ends_by_itself_says_why() -> None:
    with (
        start(Subject("pages", prepare_pages, [1])) as process,
        pytest.raises(RuntimeError, match="measures pages ended with code 1: OSError: out of luck"),
    ):
        process.ask(-1)


def test_an_interpreter_may_be_another(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$1 for $PYTHONPATH" >&2\nexit 3\n')
    python.chmod(0o755)

    with (
        start(Subject("pages", prepare_pages, [1], python=os.fspath(python))) as process,
        pytest.raises(RuntimeError, match="ended with code 3: -I for"),
    ):
        process.ask()


@pytest.mark.parametrize("module", [_child, _peers])
def test_what_runs_elsewhere_needs_nothing_of_this_package(module: object) -> None:
    tree = ast.parse(Path(module.__file__ or "").read_text())  # type: ignore[attr-defined]

    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert "gpflow_dwp" not in ast.unparse(node)


def test_subjects_take_turns() -> None:
    lines: list[str] = []
    subjects = [Subject(title, prepare_pages, [2**20]) for title in "ab"]

    timings = measure(subjects, turns=2, threads=1, report=lines.append)

    assert lines == ["prepared a", "prepared b", "turn 1 of 2", "turn 2 of 2"]
    assert list(timings) == ["a", "b"]
    for timing in timings.values():
        assert len(timing.seconds) == len(timing.processor_seconds) == 2
        assert min(*timing.seconds, timing.first_step) > 0.0


def test_ratios_are_taken_turn_by_turn() -> None:
    # The machine was slow in the second turn, for both alike.
    figure = ratio("over / under", [2.0, 20.0, 2.0], [1.0, 10.0, 1.0], at_most=1.5)

    assert figure == ("over / under", 2.0, 0.0, 1.5)


def test_spread_is_half_of_the_distance_of_the_quartiles() -> None:
    assert summary("x", [0.0, 1.0, 2.0, 3.0, 4.0], unit=0.5) == ("x", 4.0, 2.0, None)
