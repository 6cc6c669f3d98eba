"""Other libraries' deep GPs as subjects, without those libraries where they are missing."""

from __future__ import annotations

import ast
import importlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpflow_dwp.lab.benchmarks import (
    PEERS,
    SHAPES,
    Shape,
    Subject,
    Timings,
    benchmark_step,
    peer_command,
    peer_versions,
    step,
)
from gpflow_dwp.lab.benchmarks import _peer_child as script


def test_the_script_needs_nothing_of_this_package() -> None:
    tree = ast.parse(Path(script.__file__).read_text())
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [n.name for n in node.names]
        )
    }

    assert not any(str(name).startswith("gpflow_dwp") for name in imported)
    assert peer_command("/x/python")[:2] == ["/x/python", "-I"]
    assert Path(peer_command()[2]) == Path(script.__file__)


def test_data_are_standardised_and_always_the_same() -> None:
    X, Y = script.regression_data(200, 3)

    assert X.shape == (200, 3) and Y.shape == (200, 1)
    np.testing.assert_allclose([Y.mean(), Y.std()], [0.0, 1.0], atol=1e-12)
    np.testing.assert_array_equal(X, script.regression_data(200, 3)[0])


def test_every_line_is_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken: list[int] = []
    monkeypatch.setattr(sys, "stdin", io.StringIO("5\n7\n"))

    script.serve(lambda: taken.append)

    assert taken == [1, 2, 5, 7]
    first, *answers = map(json.loads, capsys.readouterr().out.splitlines())
    assert set(first) == {"prepare", "first_step"}
    assert [set(answer) for answer in answers] == [{"wall", "processor"}] * 2


@pytest.mark.parametrize("peer", PEERS)
def test_a_peer_takes_steps(peer: str) -> None:
    try:
        importlib.import_module(peer)
    except ImportError:
        pytest.skip(f"needs {peer}")
    X, Y = script.regression_data(12, 2)

    getattr(script, f"prepare_{peer}")(X, Y, 4, 2, 2)(2)


def test_peers_are_timed_beside_our_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHAPES, "tiny", Shape(8, 2, 4, 2, 2))
    asked: dict[str, Any] = {}

    def measured(subjects: list[Subject], **options: Any) -> list[Timings]:
        asked.update(options, subjects=subjects)
        return [
            Timings([10.0], [10.0], 1.0)
            if subject.model in PEERS
            else Timings([1.0 + subject.floor], [2.0], 1.0)
            for subject in subjects
        ]

    monkeypatch.setattr(step, "measure", measured)
    monkeypatch.setattr(step, "peer_versions", lambda peers, python: {"gpflux": "9"})

    result = benchmark_step(["tiny"], ["AB"], peers=["gpflux"], peer_python="/x/python")["tiny"]

    assert [subject.model for subject in asked["subjects"]] == ["AB", "gpflux", "AB"]
    assert asked["peer_python"] == "/x/python"
    figures = {figure["name"]: figure for figure in result["figures"]}
    ratio = figures["AB step float64 / gpflux step float64"]
    assert ratio["value"] == pytest.approx(0.1) and ratio["at_most"] == 0.33
    of_processor = figures["AB step float64 / gpflux step float64, processor"]
    assert of_processor["value"] == pytest.approx(0.2)
    assert result["peers"] == {"gpflux": "9"}


def test_a_peer_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpflow_dwp.lab.benchmarks.peers._VERSIONS", "print('{}')")

    with pytest.raises(ValueError, match=r"peers: gpytorch is not installed for .*\[peers\]"):
        benchmark_step(["yacht-2"], peers=["gpytorch"])


@pytest.mark.parametrize(
    ("peers", "python", "message"),
    [
        (["pymc"], None, r"peers must be some of gpflux, gpytorch, got \['pymc'\]"),
        (["gpflux"], "/no/python", "peer_python must be a Python interpreter, got /no/python"),
    ],
)
def test_refusals(peers: list[str], python: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        peer_versions(peers, python)


def test_versions_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpflow_dwp.lab.benchmarks.peers.PEERS", ("numpy",))

    assert peer_versions(["numpy"])["numpy"] == np.__version__
