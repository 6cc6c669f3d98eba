"""``gpflow-dwp study`` and ``gpflow-dwp study-report``: the papers' comparison, rerun."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from gpflow_dwp import study
from gpflow_dwp.cli.cells import check_cells, tell_failures
from gpflow_dwp.cli.configuration import write_configuration
from gpflow_dwp.cli.errors import exit_code, user_mistakes
from gpflow_dwp.cli.unfinished import CONFIGURATION
from gpflow_dwp.optional import import_optional

__all__ = ["run_study", "run_study_report"]


def run_study(options: argparse.Namespace) -> int:
    """Run the cells that are asked for and not yet there.

    :param options: As ``gpflow-dwp study`` parses them.
    :return: The exit code: 0, 1 where a cell failed, 130 for Ctrl-C.
    :raises UsageError: If the input cannot be used; nothing has been trained then.
    """
    with user_mistakes():
        # A score of each cell; the end of training would be late to know.
        import_optional("scoringrules", "cli")
        check_cells(options.out, options.options)
        cells = study.make_cells(
            options.datasets,
            options.depths,
            options.models,
            sorted({number for numbers in options.splits for number in numbers}),
            num_steps=options.num_steps,
            batch_size=options.batch_size,
            num_inducing=options.num_inducing,
            dtype=options.dtype,
            seed=options.seed,
            num_samples=options.num_samples,
            num_importance_samples=options.num_importance_samples,
            kl_annealing_steps=options.kl_annealing_steps,
            protocol=options.protocol,
            options=dict(options.options),
            uci_folder=options.uci_folder,
        )
        try:
            records = study.run_study(
                cells,
                options.out,
                jobs=options.jobs,
                threads=options.threads,
                uci_folder=options.uci_folder,
                progress=not options.quiet,
                retry_failed=options.retry_failed,
                on_start=lambda: write_configuration(options.out / CONFIGURATION, vars(options)),
            )
        except KeyboardInterrupt as error:
            print(
                f"gpflow-dwp study: interrupted; finished cells are in {options.out}, and the same "
                "command resumes the others",
                file=sys.stderr,
            )
            return exit_code(error)
    failed = [record for record in records if record.status == "failed"]
    if options.json:
        results = [asdict(record) for record in records]
        print(json.dumps({"out": str(options.out), "cells": results}))
    else:
        print(f"{len(records) - len(failed)} of {len(records)} cells are in {options.out}")
    return tell_failures("study", records, options.out)


def run_study_report(options: argparse.Namespace) -> None:
    """Print the tables of one study or several, and write them with figures.

    :param options: As ``gpflow-dwp study-report`` parses them.
    :raises UsageError: If there are no results, or what the report needs is not installed.
    """
    with user_mistakes():
        records = [record for path in options.studies for record in study.read_results(path)]
        directory = options.out
        if directory is None:
            first = options.studies[0]
            directory = (first if first.is_dir() else first.parent) / "report"
        text = study.write_report(records, directory)
    if options.json:
        finished = study.results_frame(records)
        scores = "[]" if finished.empty else study.score_table(finished).to_json(orient="records")
        print(json.dumps({"directory": str(directory), "scores": json.loads(scores)}))
        return
    print(text)
    print(f"Tables and figures are in {directory}")
