"""``gpflow-dwp export``: the model of a run as a TensorFlow SavedModel."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gpflow_dwp.cli.errors import user_mistakes
from gpflow_dwp.cli.parameters import Json, NumSamples, Run, Seed

__all__ = ["export"]


def export(
    run: Run,
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o")],
    num_samples: NumSamples = 100,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Write the model of a run directory for TensorFlow alone.

    The SavedModel runs where only TensorFlow is installed. It takes and gives the units of the
    table; its signatures are predict_y, predict_f, sample and log_density, and
    assets.extra/columns.json names the columns. Where a caller names no number of samples and no
    seed, it draws as these options say.

    example:

        gpflow-dwp export runs/houses-1 -o houses-model

    :param out: Directory to write; must not hold anything.
    :param seed: Seed of the draws.
    """
    from gpflow_dwp.cli.trained_run import TrainedRun

    with user_mistakes():
        trained = TrainedRun.read(run)
        units = trained.load(run)
        from gpflow_dwp.serving import export_model

        columns = {
            "X": trained.encoder.feature_names,
            "Y": [trained.target_name],
            "classes": trained.classes,
            "encoder": trained.encoder.to_dict(),
        }
        export_model(
            units.model,
            out,
            input_standardiser=trained.inputs,
            output_standardiser=trained.target,
            num_samples=num_samples,
            seed=seed,
            assets={"columns.json": dumps(columns, indent=1)},
        )
    if json:
        print(dumps({"out": str(out), **columns}))
    else:
        print(f"The model is in {out}: tf.saved_model.load({str(out)!r})")
