"""``gpflow-dwp compare``: the estimators' defaults beside what users have already."""

from __future__ import annotations

import argparse
import json
import sys

from gpflow_dwp import comparison, study
from gpflow_dwp.cli.cells import check_cells, tell_failures
from gpflow_dwp.cli.configuration import write_configuration
from gpflow_dwp.cli.errors import exit_code, user_mistakes
from gpflow_dwp.cli.unfinished import CONFIGURATION
from gpflow_dwp.optional import import_optional

__all__ = ["run_compare"]


def run_compare(options: argparse.Namespace) -> int:
    """Run the cells that are asked for and not yet there, and report on their tables and splits.

    :param options: As ``gpflow-dwp compare`` parses them.
    :return: The exit code: 0, 1 where a cell failed, 130 for Ctrl-C.
    :raises UsageError: If the input cannot be used; nothing has been fitted then.
    """
    splits = sorted({number for numbers in options.splits for number in numbers})
    with user_mistakes():
        for package in ("pandas", "matplotlib"):
            import_optional(package, "cli")  # the end would be late to know
        check_cells(options.out, options.settings)
        cells = comparison.make_comparison(
            options.tables,
            options.models,
            splits,
            label=options.label,
            settings=dict(options.settings),
        )
        for model in dict.fromkeys(cell.model for cell in cells):
            comparison.MODELS[model].load()
        tables = list(dict.fromkeys(cell.table for cell in cells))
        comparison.check_tables(tables, splits, uci_folder=options.uci_folder)
        if missing := [table for table in options.tables if table not in tables]:
            print(
                f"gpflow-dwp compare: left out, for want of such a split or model: "
                f"{', '.join(missing)}",
                file=sys.stderr,
            )
        try:
            records = study.run_cells(
                cells,
                options.out,
                jobs=options.jobs,
                uci_folder=options.uci_folder,
                progress=not options.quiet,
                retry_failed=options.retry_failed,
                on_start=lambda: write_configuration(options.out / CONFIGURATION, vars(options)),
            )
        except KeyboardInterrupt as error:
            print(
                f"gpflow-dwp compare: interrupted; finished cells are in {options.out}, and the "
                "same command resumes the others",
                file=sys.stderr,
            )
            return exit_code(error)
    failed = [record for record in records if record.status == "failed"]
    everything = study.read_results(options.out)
    if any(record.status == "finished" for record in records):
        text = comparison.write_comparison(everything, options.out, splits, tables)
        if not options.json:
            print(text)
    if options.json:
        counts = {"finished": len(records) - len(failed), "failed": len(failed)}
        print(json.dumps({"out": str(options.out), "cells": counts}))
    else:
        print(f"{len(records) - len(failed)} of {len(records)} cells are in {options.out}")
    return tell_failures("compare", records, options.out)
