"""What the commands that run cells share.

Annotations are no text here: those of other modules would be looked up where options are inherited.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from gpflow_dwp.cli.configuration import write_configuration
from gpflow_dwp.cli.errors import going_on
from gpflow_dwp.cli.parameters import (
    Config,
    Json,
    PositiveInteger,
    PositiveNumber,
    Quiet,
    UciFolder,
)
from gpflow_dwp.cli.run_directory import CONFIGURATION

if TYPE_CHECKING:
    from gpflow_dwp.lab.study.results import Record

__all__ = ["CellOptions", "PlaceOptions", "run_cells", "tell_end"]

_FILES = Parameter(group=Group("Processes, data and output", sort_key=3))


_OUT = Parameter(help="Where results are kept; cells that are there already are not run again.")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PlaceOptions:
    """Where cells are run.

    :param jobs: Cells that run at a time (default: 1; with --ray all that there is room for).
    :param ray: Run cells on Ray (gpflow-dwp[ray]): on this machine, or on the cluster at the
        address that follows, such as auto, whose machines share --out and the data.
    :param gpus_per_cell: GPUs that each cell on Ray has, such as 0.25 (default: none).
    """

    jobs: Annotated[PositiveInteger | None, _FILES] = None
    ray: Annotated[tuple[str, ...] | None, Parameter(consume_multiple=(0, 1)), _FILES] = None
    gpus_per_cell: Annotated[PositiveNumber | None, _FILES] = None

    def arguments(self) -> dict[str, Any]:
        """Return what the lab's ``run_cells`` is to be told of them."""
        ray = self.ray if self.ray is None else (*self.ray, "local")[0]
        return {"jobs": self.jobs, "ray": ray, "gpus": self.gpus_per_cell or 0.0}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CellOptions(PlaceOptions):
    """How cells are run, and where they are kept."""

    uci_folder: Annotated[UciFolder, _FILES] = None
    out: Annotated[Path, _FILES, _OUT]
    retry_failed: Annotated[bool, _FILES, Parameter(help="Run cells again that failed before.")] = (
        False
    )
    quiet: Annotated[Quiet, _FILES] = False
    json: Annotated[Json, _FILES] = False
    config: Annotated[Config, _FILES] = None


def run_cells(
    command: str, options: CellOptions, cells: Any, *, threads: int = 1
) -> "list[Record]":
    """Run cells, and keep their results with the options."""
    from gpflow_dwp.lab.study import runner

    with going_on(f"finished cells are in {options.out}, and the same command resumes the others"):
        return runner.run_cells(
            cells,
            options.out,
            **options.arguments(),
            threads=threads,
            uci_folder=options.uci_folder,
            progress=not options.quiet,
            retry_failed=options.retry_failed,
            on_start=lambda: write_configuration(options.out / CONFIGURATION, command, options),
        )


def tell_end(command: str, options: CellOptions, records: "list[Record]", result: Any) -> int:
    """Say what became of cells, and on standard error how many failed; return the exit code.

    :param result: What JSON tells of them.
    """
    from gpflow_dwp.cli.reports import as_json
    from gpflow_dwp.lab.study.results import RESULTS

    failed = sum(record.status == "failed" for record in records)
    if options.json:
        print(as_json({"out": str(options.out), "cells": result}))
    else:
        print(f"{len(records) - failed} of {len(records)} cells are in {options.out}")
    if failed:
        print(
            f"gpflow-dwp {command}: {failed} cells failed; {options.out / RESULTS} says "
            "why, and --retry-failed runs them again",
            file=sys.stderr,
        )
    return 1 if failed else 0
