"""``gpflow-dwp export``: the model of a run as a TensorFlow SavedModel."""

from __future__ import annotations

import argparse
import json

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.run_directory import MODEL, RunDescription
from gpflow_dwp.data import Standardiser
from gpflow_dwp.models import load_model
from gpflow_dwp.serving import export_model

__all__ = ["COLUMNS", "run_export"]

COLUMNS = "assets.extra/columns.json"
"""Where the names of X's columns and of the classes go, and what a table's columns become them by:
TensorFlow keeps such files and does not read them."""


def run_export(options: argparse.Namespace) -> None:
    """Write the model of a run for programs that have TensorFlow only.

    :param options: As ``gpflow-dwp export`` parses them.
    :raises UsageError: If the run cannot be used, or the output is there.
    """
    with user_mistakes():
        if options.out.exists() and (not options.out.is_dir() or any(options.out.iterdir())):
            raise UsageError(f"{options.out} exists and is not an empty directory")
        run = RunDescription.read(options.run)
        model = load_model(options.run / MODEL)
        export_model(
            model,
            options.out,
            input_standardiser=Standardiser.from_dict(run.inputs),
            output_standardiser=None if run.target is None else Standardiser.from_dict(run.target),
            num_samples=options.num_samples,
            seed=options.seed,
        )
        columns = {
            "X": run.encoder.feature_names,
            "Y": [run.target_name],
            "classes": run.classes,
            "encoder": run.encoder.to_dict(),
        }
        path = options.out / COLUMNS
        path.parent.mkdir()
        path.write_text(json.dumps(columns, indent=1))
    if options.json:
        print(json.dumps({"out": str(options.out), **columns}))
        return
    print(f"The model is in {options.out}: tf.saved_model.load({str(options.out)!r})")
