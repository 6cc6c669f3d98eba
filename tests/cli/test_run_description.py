"""What a run says of itself, and that nothing else is taken for it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import write_csv

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.run_description import RunDescription
from gpflow_dwp.data import read_cells
from gpflow_dwp.exceptions import TableError

RUN = RunDescription(
    feature_names=("a", "b"),
    target_name="y",
    task="regression",
    classes=None,
    inputs={"mean": [1.0, 2.0], "scale": [0.1, 10.0]},
    target={"mean": [3.0], "scale": [4.0]},
    options={"depth": 2},
    versions={"gpflow": "2"},
)
LABELS = replace(RUN, task="classification", classes=("no", "yes"), target=None)


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("run", [RUN, LABELS], ids=["regression", "classification"])
def test_description_is_read_as_it_was_written(run: RunDescription) -> None:
    run.write(Path())
    assert RunDescription.read(Path()) == run


def test_rows_are_standardised() -> None:
    cells = read_cells(write_csv(Path("t.csv"), {"a": [1.1, 1.0], "b": [12.0, 2.0]}))
    X, Y = np.array([[1.1, 12.0], [1.0, 2.0]]), np.array([[7.0], [3.0]])
    np.testing.assert_allclose(RUN.standardise_inputs(X, cells), [[1.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(RUN.standardise_target(Y, cells), [[1.0], [0.0]])
    np.testing.assert_array_equal(LABELS.standardise_target(Y, cells), Y)
    with pytest.raises(TableError, match=r"t.csv: column 'b' holds 1e\+300 in data row 2"):
        RUN.standardise_inputs(np.array([[1.1, 12.0], [1.0, 1e300]]), cells)


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, feature_names=("a",)),
        replace(RUN, inputs={"mean": [1.0, 2.0], "scale": [0.1, -10.0]}),
        replace(RUN, target=None),
        replace(RUN, target={"mean": [3.0, 3.0], "scale": [4.0, 4.0]}),
        replace(RUN, classes=("no", "yes")),
        replace(LABELS, classes=None),
        replace(LABELS, target=RUN.target),
    ],
)
def test_descriptions_that_contradict_themselves_are_damaged(run: RunDescription) -> None:
    run.write(Path())
    with pytest.raises(UsageError, match=r"^run.json is damaged: "):
        RunDescription.read(Path())


def test_a_directory_without_description_is_no_run() -> None:
    with pytest.raises(UsageError, match="has no run.json"):
        RunDescription.read(Path())


def test_no_flipped_digit_is_read() -> None:
    RUN.write(Path())
    text = Path("run.json").read_text()
    for place in [place for place, character in enumerate(text) if character.isdigit()]:
        flipped = "7" if text[place] != "7" else "8"
        Path("run.json").write_text(text[:place] + flipped + text[place + 1 :])
        with pytest.raises(UsageError, match=r"^run.json (is damaged|was not written by this)"):
            RunDescription.read(Path())


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 5000, '{"format": "gpflow_dwp.run"}'])
def test_what_is_no_description_is_damaged(content: str) -> None:
    Path("run.json").write_text(content)
    with pytest.raises(UsageError, match=r"^run.json is damaged: "):
        RunDescription.read(Path())


def test_other_versions_are_named() -> None:
    Path("run.json").write_text(json.dumps({"format": "gpflow_dwp.run", "format_version": 1}))
    with pytest.raises(UsageError, match="was not written by this version"):
        RunDescription.read(Path())
