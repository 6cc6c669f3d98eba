"""What the commands that run cells share.

Annotations are no text here: those of other modules would be looked up where options are inherited.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from gpflow_dwp.cli.configuration import write_configuration
from gpflow_dwp.cli.errors import going_on
from gpflow_dwp.cli.parameters import Config, Json, PositiveInteger, Quiet, UciFolder
from gpflow_dwp.cli.unfinished import CONFIGURATION

if TYPE_CHECKING:
    from gpflow_dwp.lab.study import Record

__all__ = ["CellOptions", "keep_cells", "tell_failures"]

_FILES = Parameter(group=Group("Processes, data and output", sort_key=3))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CellOptions:
    """How cells are run, and where they are kept."""

    jobs: Annotated[PositiveInteger, _FILES, Parameter(help="Cells that run at a time.")] = 1
    uci_folder: Annotated[UciFolder, _FILES] = None
    out: Annotated[
        Path,
        _FILES,
        Parameter(
            help="Where results are kept; cells that are there already are not run again.",
        ),
    ]
    retry_failed: Annotated[bool, _FILES, Parameter(help="Run cells again that failed before.")] = (
        False
    )
    quiet: Annotated[Quiet, _FILES] = False
    json: Annotated[Json, _FILES] = False
    config: Annotated[Config, _FILES] = None


def keep_cells(
    command: str, options: CellOptions, run: "Callable[..., list[Record]]", cells: Any, **more: Any
) -> "list[Record]":
    """Run cells, and keep their results with the options.

    :param command: Name of the command.
    :param options: Its options.
    :param run: Of :mod:`gpflow_dwp.lab.study`.
    :param cells: What to run.
    :param more: Further arguments of ``run``.
    """
    with going_on(f"finished cells are in {options.out}, and the same command resumes the others"):
        return run(
            cells,
            options.out,
            jobs=options.jobs,
            uci_folder=options.uci_folder,
            progress=not options.quiet,
            retry_failed=options.retry_failed,
            on_start=lambda: write_configuration(options.out / CONFIGURATION, command, options),
            **more,
        )


def tell_failures(command: str, records: "Sequence[Record]", out: Path) -> int:
    """Say on standard error how many cells failed; return the exit code.

    :param command: Name of the command.
    :param records: What became of its cells.
    :param out: Where results are kept.
    """
    from gpflow_dwp.lab.study import RESULTS

    failed = sum(record.status == "failed" for record in records)
    if failed:
        print(
            f"gpflow-dwp {command}: {failed} cells failed; {out / RESULTS} says "
            "why, and --retry-failed runs them again",
            file=sys.stderr,
        )
    return 1 if failed else 0
