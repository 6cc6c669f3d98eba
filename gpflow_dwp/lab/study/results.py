"""The results file of a study: one JSON object a line, appended, never rewritten."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from gpflow_dwp.files import held, seal, sync, unseal

__all__ = ["CELL_PLACE", "COMPARISON_PLACE", "RESULTS", "Record", "append_record", "read_results"]

RESULTS = "results.jsonl"
"""Name of the results file in a study's directory."""

CELL_PLACE = ("dataset", "depth", "model", "split")
"""The fields that every cell of a study has."""

COMPARISON_PLACE = ("table", "model", "label", "split")
"""The fields that every cell of a comparison has: see :mod:`gpflow_dwp.lab.comparison`."""


@dataclass(frozen=True)
class Record:
    """What became of one cell, of a study or of a comparison.

    :param key: The cell's key.
    :param cell: The cell, as its ``to_dict`` gives it.
    :param status: "finished" or "failed".
    :param error: Kind and message of what went wrong; None where nothing did.
    :param metrics: Scores by name; None for a failed cell. "elbo" and "elbo_standard_error" are in
        nats per training row, in standardised units as the papers print them, with as many
        importance samples as in training; "log_likelihood_standardised", "log_likelihood_kernel"
        and "shapiro_wilk", of some cells, belong to standardised units too; all others are in raw
        units. "seconds_per_step", "seconds_per_epoch" and "training_seconds" are times.
    :param provenance: Versions, commit, dtype, threads, machine, seconds and date.
    """

    key: str
    cell: Mapping[str, Any]
    status: Literal["finished", "failed"]
    error: str | None
    metrics: Mapping[str, float] | None
    provenance: Mapping[str, Any]

    def to_json(self) -> str:
        """Return one line of the results file, without its end: with its checksum."""
        return json.dumps(seal(asdict(self)))

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Return the inverse of :meth:`to_json`.

        :raises ValueError: If the text is not a record, or not as it was written.
        """
        try:
            values = json.loads(text)
        except RecursionError as error:
            raise ValueError(f"a record must be flat: {error}.") from error
        values = unseal(values) if isinstance(values, dict) else values
        names = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or set(values) != names:
            raise ValueError(f"a record must be an object with the fields {sorted(names)}.")
        for name in ("cell", "provenance"):
            if not isinstance(values[name], dict):
                raise ValueError(f"{name} must be an object, got {values[name]!r}.")
        place = COMPARISON_PLACE if "table" in values["cell"] else CELL_PLACE
        if missing := sorted(set(place) - set(values["cell"])):
            raise ValueError(f"cell has no {', '.join(missing)}.")
        if values["status"] == "finished" and not _are_numbers(values["metrics"]):
            raise ValueError(f"metrics must be numbers by name, got {values['metrics']!r}.")
        if values["status"] not in ("finished", "failed"):
            raise ValueError(f"status must be finished or failed, got {values['status']!r}.")
        return cls(**values)


def read_results(path: str | Path) -> list[Record]:
    """Read a results file: the last record of each cell, in the order of the file.

    Of a line that is damaged, or was not written to its end, a warning tells; its cell counts as
    one that did not run.

    :param path: The file, or the directory of a study.
    :raises FileNotFoundError: If there is no such file.
    """
    path = Path(path)
    if path.is_dir():
        path = path / RESULTS
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such results file")
    records: dict[str, Record] = {}
    for number, line in enumerate(path.read_bytes().removesuffix(b"\n").split(b"\n"), start=1):
        try:
            record = Record.from_json(line.decode())
        except ValueError as error:
            if line or number > 1:  # an empty file has no line
                warnings.warn(
                    f"{path}, line {number} is damaged and left out, as if its cell had not run: "
                    f"{error}",
                    stacklevel=2,
                )
            continue
        records.pop(record.key, None)
        records[record.key] = record
    return list(records.values())


def append_record(path: str | Path, record: Record) -> None:
    """Add a record to a results file, whole or not at all, and wait until it is on the disk.

    The rest of a write that was cut off is taken away first.

    :param path: The file; made here if need be.
    """
    path = Path(path)
    path.touch()
    with held(path, wait=True), path.open("r+b") as file:
        whole, newline, rest = file.read().rpartition(b"\n")
        if rest and not _is_whole(rest):
            file.truncate(len(whole) + len(newline))
        file.seek(0, os.SEEK_END)
        start = b"\n" if _is_whole(rest) else b""
        file.write(start + record.to_json().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    sync(path.parent)


def _are_numbers(metrics: Any) -> bool:
    return isinstance(metrics, dict) and all(
        value is None or isinstance(value, (int, float)) for value in metrics.values()
    )


def _is_whole(line: bytes) -> bool:
    try:
        Record.from_json(line.decode())
    except ValueError:
        return False
    return True
