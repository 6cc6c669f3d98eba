"""The results file: whole lines, whatever happens to the one that is being written."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from study_results import finished

from gpflow_dwp.files import seal, unseal
from gpflow_dwp.lab.study.results import RESULTS, Record, append_record, read_results

FIRST, SECOND = (finished("yacht", 2, model, 0, cell={}) for model in ("GW", "A"))
FAILED = replace(FIRST, status="failed", error="ValueError: no", metrics=None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / RESULTS


def test_records_are_read_as_they_were_written(path: Path) -> None:
    for record in (FIRST, SECOND):
        append_record(path, record)

    assert read_results(path) == read_results(path.parent) == [FIRST, SECOND]
    lines = path.read_text().splitlines()
    assert [json.loads(line)["key"] for line in lines] == [FIRST.key, SECOND.key]
    assert set(json.loads(lines[0])) == {
        "key",
        "cell",
        "status",
        "error",
        "metrics",
        "provenance",
        "sha256",
    }


def test_the_last_record_of_a_cell_counts(path: Path) -> None:
    for record in (FAILED, SECOND, FIRST):
        append_record(path, record)

    assert read_results(path) == [SECOND, FIRST]


@pytest.mark.parametrize("kept", [1, 20, 200])
def test_a_line_that_was_cut_off_is_passed_over_and_then_replaced(path: Path, kept: int) -> None:
    append_record(path, FIRST)
    with path.open("a") as file:
        file.write(SECOND.to_json()[:kept])
    with pytest.warns(UserWarning, match=r"results\.jsonl, line 2 is damaged and left out"):
        assert read_results(path) == [FIRST]

    append_record(path, SECOND)

    assert read_results(path) == [FIRST, SECOND]
    assert len(path.read_text().splitlines()) == 2


def test_a_line_without_its_end_counts(path: Path) -> None:
    path.write_text(FIRST.to_json())
    assert read_results(path) == [FIRST]

    append_record(path, SECOND)

    assert read_results(path) == [FIRST, SECOND]


def test_a_first_line_that_was_cut_off(path: Path) -> None:
    path.write_text(FIRST.to_json()[:50])
    with pytest.warns(UserWarning, match="line 1 is damaged"):
        assert read_results(path) == []

    append_record(path, FIRST)

    assert read_results(path) == [FIRST]


def resealed(**changes: object) -> str:
    """A line that is whole but says something else than any record."""
    return json.dumps(seal(unseal(json.loads(FIRST.to_json())) | changes))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "not json",
        "[" * 100_000,
        "[]",
        "{}",
        json.dumps(seal({"key": "0"})),
        json.dumps(unseal(json.loads(FIRST.to_json()))),
        FIRST.to_json().replace("0.5", "0.6", 1),
        resealed(status="perhaps"),
        resealed(cell=None),
        resealed(cell={"dataset": "yacht"}),
        resealed(cell={"table": "yacht", "model": "dwp"}),
        resealed(provenance=None),
        resealed(metrics=None),
        resealed(metrics={"elbo": "abc"}),
    ],
    ids=lambda line: line[:20],
)
def test_a_damaged_line_is_named_and_left_out(path: Path, line: str) -> None:
    path.write_text(f"{SECOND.to_json()}\n{line}\n{FIRST.to_json()}\n")

    with pytest.warns(UserWarning, match=r"results\.jsonl, line 2 is damaged and left out, as if"):
        assert read_results(path) == [SECOND, FIRST]


def test_no_flipped_bit_is_read(path: Path) -> None:
    content = f"{FIRST.to_json()}\n{SECOND.to_json()}\n".encode()
    for place in range(0, len(content), 7):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read = read_results(path)
        assert read in ([FIRST, SECOND], [FIRST], [SECOND], [])


def test_no_results(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such results file"):
        read_results(tmp_path)


def test_records_are_plain_json() -> None:
    assert Record.from_json(FAILED.to_json()) == FAILED
