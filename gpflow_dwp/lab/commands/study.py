"""``gpflow-dwp study`` and ``gpflow-dwp study-report``: the papers' comparison, rerun."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from json import dumps, loads
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from gpflow_dwp.cli.errors import user_mistakes
from gpflow_dwp.cli.parameters import (
    LIST,
    Dtype,
    Json,
    Names,
    PositiveInteger,
    Seed,
    Settings,
    Size,
    Sizes,
    Splits,
    assignments,
)
from gpflow_dwp.lab.commands.cells import CellOptions, run_cells, tell_end
from gpflow_dwp.optional import import_optional

__all__ = ["StudyOptions", "study", "study_report"]

_CELLS = Parameter(group=Group("Cells: every combination is run", sort_key=1))
_TRAINING = Parameter(group=Group("Training", sort_key=2))
_Hidden = Literal["DGP", "DIWP", "GW", "A", "AB", "VMG"]
_Latent = Literal["GP", "GP-GP", "LV-GP", "LV-GP-GP", "LV-GP-GP-GP", "LV-DWP"]
_Model = Literal[_Hidden, _Latent]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StudyOptions(CellOptions):
    """What is trained.

    :param datasets: UCI data sets: boston concrete energy kin8nm naval power protein wine yacht.
    :param depths: Layers: N - 1 hidden ones and an output GP.
    :param models: Deep GP (DGP), deep inverse Wishart process (DIWP), or deep Wishart process by
        its posterior (GW A AB), or matrix-Gaussian network (VMG); with latent variables (LV) or
        without a deep GP by its layers (GP GP-GP LV-GP LV-GP-GP LV-GP-GP-GP), or a deep Wishart
        process (LV-DWP).
    :param splits: Numbers of splits, such as 0-4 or 0 3 7 or 0-2,5.
    :param num_steps: Gradient steps (default: 20000, as in the papers on DWPs; VMG: 60000).
    :param num_inducing: Inducing points (default: 100; 128 if cde).
    :param batch_size: Rows of a minibatch (default: all up to 2000 training rows, 1000 above; 512
        if cde; for VMG 20, or a 50th of the rows if that is more).
    :param protocol: Learning rate, annealing and number of draws: papers, for VMG that of its own
        paper; fast; cde, that of conditional density estimation with latent variables, which also
        scores each row's marginal; or cde-fast, that with the training of fast.
    :param num_samples: Draws that estimate the bound (default: 10, as in the papers, 1 for VMG; 2
        if fast; if cde 1, or 2 for a deep Wishart process).
    :param num_importance_samples: Draws of each row's latent variables, in models that have them:
        more than 1 for the importance-weighted bound.
    :param kl_annealing_steps: When the weight of the log ratios reaches 1 (default: 1000, as in the
        papers, no annealing for VMG; if fast a sixth of the steps for each hidden layer, at most
        half; if cde none, or as fast for a deep Wishart process).
    :param options: Further arguments of the functions that build the models, such as jitter=1e-8.
    :param seed: For start and draws.
    :param threads: Threads of each cell.
    """

    datasets: Annotated[Names, _CELLS]
    depths: Annotated[Sizes, _CELLS] = (2,)
    models: Annotated[tuple[_Model, ...], LIST, _CELLS] = ("DGP", "GW", "A", "AB")
    splits: Annotated[Splits, _CELLS] = (0,)
    num_steps: Annotated[
        PositiveInteger | None, Parameter(name=("--steps", "--num-steps")), _TRAINING
    ] = None
    num_inducing: Annotated[Size | None, _TRAINING] = None
    batch_size: Annotated[PositiveInteger | None, _TRAINING] = None
    protocol: Annotated[Literal["papers", "fast", "vmg", "cde", "cde-fast"], _TRAINING] = "papers"
    num_samples: Annotated[Size | None, _TRAINING] = None
    num_importance_samples: Annotated[Size, Parameter("--importance-samples"), _TRAINING] = 1
    kl_annealing_steps: Annotated[PositiveInteger | None, _TRAINING] = None
    dtype: Annotated[Dtype, _TRAINING] = "float64"
    seed: Annotated[Seed, _TRAINING] = 0
    options: Annotated[Settings, _TRAINING] = ()
    threads: Annotated[PositiveInteger, _TRAINING] = 1


def study(options: StudyOptions) -> int:
    """Rerun cells of the papers' comparison on UCI data sets.

    Deep Gaussian and deep Wishart processes are trained on UCI regression sets by the papers'
    protocol, each in a process of its own, and the scores of every one are kept as soon as it is
    done. The same command resumes a study that was ended; training goes on where it stopped.

    examples:

        gpflow-dwp study --datasets yacht --splits 0 --steps 2000 --out studies/short
        gpflow-dwp study --datasets yacht boston --depths 2 5 --splits 0-4 --out studies/full
        gpflow-dwp study --protocol cde --datasets power --models GP LV-GP-GP --out studies/density
        gpflow-dwp study --config studies/full/config.yaml --seed 1 --out studies/seed-1
    """
    from gpflow_dwp.lab.study.grid import make_cells

    apart = {"threads", "options", *(field.name for field in fields(CellOptions))}
    asked = {name: value for name, value in vars(options).items() if name not in apart}
    with user_mistakes():
        # A score of each cell; the end of training would be late to know.
        import_optional("scoringrules", "cli")
        cells = make_cells(
            **asked, options=assignments(options.options), uci_folder=options.uci_folder
        )
        records = run_cells("study", options, cells, threads=options.threads)
    return tell_end("study", options, records, [asdict(record) for record in records])


def study_report(
    studies: Annotated[tuple[Path, ...], LIST], /, *, out: Path | None = None, json: Json = False
) -> None:
    """Put a study's results beside those that the papers print.

    The papers' tables are printed, each number beside the one in print, and written as text, CSV
    and figures.

    example:

        gpflow-dwp study-report studies/full

    :param studies: What study --out wrote.
    :param out: Where tables and figures go (default: report in the first of the studies).
    """
    from gpflow_dwp.lab.study.frame import results_frame
    from gpflow_dwp.lab.study.report import write_report
    from gpflow_dwp.lab.study.results import read_results
    from gpflow_dwp.lab.study.tables import score_table

    with user_mistakes():
        records = [record for path in studies for record in read_results(path)]
        first = studies[0] if studies[0].is_dir() else studies[0].parent
        directory = first / "report" if out is None else out
        text = write_report(records, directory)
    if json:
        finished = results_frame(records)
        scores = "[]" if finished.empty else score_table(finished).to_json(orient="records")
        print(dumps({"directory": str(directory), "scores": loads(scores)}))
        return
    print(text)
    print(f"Tables and figures are in {directory}")
