"""What a run says of itself, and that nothing else is taken for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.trained_run import TrainedRun
from gpflow_dwp.data import ColumnEncoder, Standardiser
from gpflow_dwp.files import seal

INPUTS, TARGET = Standardiser([1.0, 2.0, 0.5], [0.1, 10.0, 1.0]), Standardiser([3.0], [4.0])
ENCODER = ColumnEncoder(("a", "town"), {"town": ("Bath", "York")}, {"a": 1.5})
OTHERS: dict[str, Any] = {"options": {"depth": 2}, "versions": {"gpflow": "2"}}
RUN = TrainedRun(ENCODER, "y", "regression", None, INPUTS, TARGET, **OTHERS)
LABELS = TrainedRun(ENCODER, "y", "classification", ("no", "yes"), INPUTS, None, **OTHERS)
DAMAGED = r"^run.json is damaged: "


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("run", [RUN, LABELS], ids=["regression", "classification"])
def test_description_is_read_as_it_was_written(run: TrainedRun) -> None:
    run.write(Path())
    again = TrainedRun.read(Path())
    assert again.to_dict() == run.to_dict() and again.encoder == run.encoder


@pytest.mark.parametrize(
    "change",
    [
        {"feature_names": ["a"], "categories": {}},
        {"inputs": {"mean": [1.0, 2.0, 0.5], "scale": [0.1, -10.0, 1.0]}},
        {"target": None},
        {"target": {"mean": [3.0, 3.0], "scale": [4.0, 4.0]}},
        {"classes": ["no", "yes"]},
        {"task": "classification", "target": None},
        {"task": "classification", "classes": ["no", "yes"]},
    ],
)
def test_descriptions_that_contradict_themselves_are_damaged(change: dict[str, Any]) -> None:
    Path("run.json").write_text(json.dumps(seal({**RUN.to_dict(), **change})))
    with pytest.raises(UsageError, match=DAMAGED):
        TrainedRun.read(Path())


def test_a_directory_without_description_is_no_run() -> None:
    with pytest.raises(UsageError, match="has no run.json"):
        TrainedRun.read(Path())


def test_no_flipped_digit_is_read() -> None:
    RUN.write(Path())
    text = Path("run.json").read_text()
    for place in [place for place, character in enumerate(text) if character.isdigit()]:
        flipped = "7" if text[place] != "7" else "8"
        Path("run.json").write_text(text[:place] + flipped + text[place + 1 :])
        with pytest.raises(UsageError, match=r"^run.json (is damaged|was not written by this)"):
            TrainedRun.read(Path())


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 5000, '{"format": "gpflow_dwp.run"}'])
def test_what_is_no_description_is_damaged(content: str) -> None:
    Path("run.json").write_text(content)
    with pytest.raises(UsageError, match=DAMAGED):
        TrainedRun.read(Path())


def test_other_versions_are_named() -> None:
    Path("run.json").write_text(json.dumps({"format": "gpflow_dwp.run", "format_version": 1}))
    with pytest.raises(UsageError, match="was not written by this version"):
        TrainedRun.read(Path())
