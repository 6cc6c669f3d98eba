"""What commands say beside their results."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.data import Cells, ColumnEncoder
from gpflow_dwp.files import write_whole

__all__ = ["as_json", "check_out", "finite", "print_now", "report_cells", "silent", "write_json"]

_MANY_CATEGORIES = 30


def check_out(path: Path | None, *, overwrite: bool) -> None:
    """Refuse a file that cannot be written before anything is computed for it.

    :param path: The file; None for none.
    :param overwrite: Whether it may exist.
    :raises UsageError: If it exists, is a directory, or would be in none.
    """
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{path} is a directory, not a file")
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists; give --overwrite to replace it")
    if not path.resolve().parent.is_dir():
        raise UsageError(f"{path.resolve().parent} is not a directory")


def as_json(values: Any) -> str:
    """Return plain values as one line of JSON, which has null for numbers that are not finite.

    :param values: Dictionaries, lists, tuples, texts and numbers.
    """
    return json.dumps(finite(values), allow_nan=False)


def finite(values: Any) -> Any:
    """Return plain values with None, which is JSON's null, for numbers that are not finite.

    :param values: Dictionaries, lists, tuples, texts and numbers.
    """
    if isinstance(values, dict):
        return {name: finite(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [finite(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


def write_json(where: Sequence[Path] | None, values: dict[str, Any]) -> bool:
    """Do what ``--json [FILE]`` asks for.

    :param where: A file to write; nothing for standard output; None for neither.
    :param values: What to write, in plain values.
    :return: Whether nothing else is to be printed.
    """
    for file in where or ():
        write_whole(file, json.dumps(finite(values), indent=1) + "\n")
    if where is None or where:
        return False
    print(as_json(values))
    return True


def report_cells(command: str, encoder: ColumnEncoder, cells: Cells) -> None:
    """Say which columns have many categories, which training did not see, and what is missing.

    :param command: Name of the command.
    :param encoder: Fitted on training rows.
    :param cells: Rows of a table.
    """
    for name, categories in encoder.categories.items():
        if len(categories) > _MANY_CATEGORIES:
            _warn(
                command,
                f"column {name!r} holds {len(categories)} categories, each of which is an input: "
                "join rare ones, or leave it out (--drop)",
            )
    for name, counts in encoder.unseen(cells).items():
        found = ", ".join(f"{value!r} ({count} rows)" for value, count in counts.items())
        _warn(
            command,
            f"column {name!r} holds categories that training did not see, taken as none of the "
            f"known ones: {found}",
        )
    for name, count in encoder.count_filled(cells).items():
        _warn(command, f"column {name!r}: {count} missing cells filled with {encoder.fill[name]}")


def print_now(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def silent(text: str) -> None:
    """Print nothing."""


def _warn(command: str, text: str) -> None:
    print(f"gpflow-dwp {command}: {text}", file=sys.stderr)
