"""``gpflow-dwp export``: the model of a run as a TensorFlow SavedModel."""

from __future__ import annotations

import argparse
import json

from gpflow_dwp.cli.errors import user_mistakes
from gpflow_dwp.cli.run_description import RunDescription
from gpflow_dwp.cli.run_directory import MODEL, read_run
from gpflow_dwp.data import Standardiser
from gpflow_dwp.models import load_model
from gpflow_dwp.serving import export_model

__all__ = ["COLUMNS", "run_export"]

COLUMNS = "columns.json"
"""Where, in ``assets.extra``, the names of X's columns and of the classes go, and what a table's
columns become them by."""


def run_export(options: argparse.Namespace) -> None:
    """Write the model of a run for programs that have TensorFlow only.

    :param options: As ``gpflow-dwp export`` parses them.
    :raises UsageError: If the run cannot be used, or the output is there.
    """
    with user_mistakes():
        with read_run(options.run) as folder:
            run, model = RunDescription.read(folder), load_model(folder / MODEL)
        columns = {
            "X": run.encoder.feature_names,
            "Y": [run.target_name],
            "classes": run.classes,
            "encoder": run.encoder.to_dict(),
        }
        export_model(
            model,
            options.out,
            input_standardiser=Standardiser.from_dict(run.inputs),
            output_standardiser=None if run.target is None else Standardiser.from_dict(run.target),
            num_samples=options.num_samples,
            seed=options.seed,
            assets={COLUMNS: json.dumps(columns, indent=1)},
        )
    if options.json:
        print(json.dumps({"out": str(options.out), **columns}))
        return
    print(f"The model is in {options.out}: tf.saved_model.load({str(options.out)!r})")
