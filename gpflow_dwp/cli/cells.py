"""What the commands that run cells share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.study import RESULTS, Record

__all__ = ["check_cells", "tell_failures"]


def check_cells(out: Path, settings: Sequence[tuple[str, Any]]) -> None:
    """Refuse a place for results that is a file, and a setting that is given twice.

    :param out: Where results are kept.
    :param settings: Names and values of ``--set``.
    :raises UsageError: If either cannot be used.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; --out takes a directory")
    names = [name for name, _ in settings]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise UsageError(f"--set must give each name once, got {', '.join(twice)} twice")


def tell_failures(command: str, records: Sequence[Record], out: Path) -> int:
    """Say on standard error how many cells failed; return the exit code.

    :param command: Name of the command.
    :param records: What became of its cells.
    :param out: Where results are kept.
    """
    failed = sum(record.status == "failed" for record in records)
    if failed:
        print(
            f"gpflow-dwp {command}: {failed} cells failed; {out / RESULTS} says "
            "why, and --retry-failed runs them again",
            file=sys.stderr,
        )
    return 1 if failed else 0
