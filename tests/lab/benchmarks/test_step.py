"""The benchmark of a step, at a size that takes no time."""

from __future__ import annotations

from typing import Any

import pytest

from gpflow_dwp.lab.benchmarks import step
from gpflow_dwp.lab.benchmarks.measurement import Subject, Timings
from gpflow_dwp.lab.benchmarks.shapes import SHAPES, Shape
from gpflow_dwp.lab.benchmarks.step import benchmark_step


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHAPES, "yacht-2", Shape(8, 2, 4, 2, 2))


def test_peers_are_timed_beside_our_models(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, lines = list[Subject](), list[str]()

    def measured(subjects: list[Subject], **_: Any) -> dict[str, Timings]:
        asked.extend(subjects)
        seconds = {
            "AB step float64": 1.0,
            "gpflux step float64": 10.0,
            "default step float64": 4.0,
            "AB floor float64": 2.0,
        }
        return {
            s.title: Timings([seconds[s.title]], [2.0 + 8.0 * bool(s.python)], 1.0)
            for s in subjects
        }

    monkeypatch.setattr(step, "measure", measured)
    monkeypatch.setattr(step, "_lowered", lambda *_: None)
    monkeypatch.setattr(step, "_peer_versions", lambda peers, python: {"gpflux": "9"})

    result = benchmark_step(
        shapes=("yacht-2",),
        models=("AB",),
        peers=("gpflux",),
        peer_python="/x/python",
        report=lines.append,
    )["yacht-2"]

    assert lines[0] == "yacht-2:"
    assert [subject.python for subject in asked] == [None, "/x/python", None, None]
    assert asked[2].arguments == ("AB", SHAPES["yacht-2"], "float64", "regression")
    figures = {figure.name: figure for figure in result.figures}
    assert set(figures) > {
        "AB step float64 / AB floor float64",
        "AB step float64, ms",
        "AB floor float64, ms",
        "AB step float64, first step, s",
    }
    ratio = figures["AB step float64 / gpflux step float64"]
    assert ratio.value == pytest.approx(0.1) and ratio.at_most == 0.33
    assert figures["default step float64 / gpflux step float64"].value == pytest.approx(0.4)
    of_processor = figures["AB step float64 / gpflux step float64, processor"]
    assert of_processor.value == pytest.approx(0.2)
    assert result.values["peers"] == {"gpflux": "9"}


def test_a_peer_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "_VERSIONS", "print('{}')")

    with pytest.raises(ValueError, match=r"--peers: gpytorch is not installed for .*\[peers\]"):
        benchmark_step(peers=("gpytorch",), report=pytest.fail)


def test_an_interpreter_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="--peer-python must be .*, got /no/python"):
        benchmark_step(peers=("gpflux",), peer_python="/no/python", report=pytest.fail)
