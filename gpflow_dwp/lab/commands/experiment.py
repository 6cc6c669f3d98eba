"""``gpflow-dwp experiment``: depth, and posteriors over training iterates."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from gpflow_dwp.cli.errors import going_on, user_mistakes
from gpflow_dwp.cli.parameters import (
    LIST,
    Json,
    Names,
    PositiveInteger,
    PositiveIntegers,
    Quiet,
    UciFolder,
)
from gpflow_dwp.lab.commands.cells import PlaceOptions
from gpflow_dwp.optional import import_optional

__all__ = ["ExperimentOptions", "experiment"]

_What = Literal[
    "depth",
    "factor-analysis",
    "linear-posterior",
    "linear-prediction",
    "deep-wishart",
    "multi-swag",
]
_Model = Literal["DGP", "DIWP", "GW", "A", "AB"]
_LARGEST = (10.0, 100.0, 1000.0)
_IN_DIRECTORIES = {"depth": "models", "multi-swag": "members"}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """What is run, and kept where.

    :param what: Which experiment.
    :param out: CSV table; parts that it holds are not run again, and other --trials, --steps,
        --deepest or --members than theirs are refused.
    :param trials: Seeds of the synthetic experiments, folds of linear-prediction.
    :param dimensions: Of factor-analysis.
    :param datasets: UCI data sets of depth and the last three experiments.
    :param splits: First splits of each data set, for depth and the last two.
    :param steps: Training steps of each depth; before iterates are collected, for the last two.
    :param models: Of depth, in which each is trained.
    :param deepest: Layers of the last model of depth. Models are kept in a folder beside --out.
    :param members: Starts of multi-swag, kept in a folder beside --out.
    :param place: Where members are trained.
    """

    what: _What = field(kw_only=False)
    out: Path
    trials: PositiveInteger = 10
    dimensions: PositiveIntegers = (100, 1000)
    datasets: Names = ("yacht", "energy", "boston")
    splits: PositiveInteger = 3
    steps: PositiveInteger = 8_000
    models: Annotated[tuple[_Model, ...], LIST] = ("A", "DGP")
    deepest: PositiveInteger = 7
    members: PositiveInteger = 3
    uci_folder: UciFolder = None
    quiet: Quiet = False
    json: Json = False
    place: PlaceOptions = PlaceOptions()


def experiment(options: ExperimentOptions) -> None:
    """Grow models layer by layer, or rerun experiments with posteriors over training iterates.

    Every result is written with its provenance, and means and standard errors are printed:

    - depth: bounds of models of which each starts at the one before, a layer less deep
    - factor-analysis: online and batch factor analysis of vectors drawn from factor models
    - linear-posterior: iterates of linear regression beside its exact posterior
    - linear-prediction: test errors of averages and ensembles of those iterates
    - deep-wishart: test scores of averages and ensembles of a deep Wishart process's iterates
    - multi-swag: those of ensembles of several such processes, which train as cells of a study do

    examples:

        gpflow-dwp experiment depth --datasets yacht --splits 1 --steps 3000 --out depth.csv
        gpflow-dwp experiment linear-posterior --out linear-posterior.csv
        gpflow-dwp experiment factor-analysis --dimensions 100 --out factor-analysis.csv
    """
    with user_mistakes():
        import_optional("pandas", "cli")
        from gpflow_dwp.lab.experiments.experiment import add_to_table, read_table, summarise
        from gpflow_dwp.lab.experiments.multi_swag import train_members

        path, parts = options.out, _parts(options)
        table = read_table(path, type(parts[0]))
        missing = [part for part in parts if not part.is_in(table)]
        for part in missing:
            part.check()
    try:
        if missing and options.what == "multi-swag":
            with user_mistakes():
                train_members(missing, progress=not options.quiet, **options.place.arguments())
        for part in missing:
            if not options.quiet:
                print(part.title, file=sys.stderr, flush=True)
            table = add_to_table(path, table, part)
    except KeyboardInterrupt:
        kept = getattr(parts[0], "directory", path)
        if not kept.exists():
            raise
        what = _IN_DIRECTORIES.get(options.what, "parts")
        with going_on(f"finished {what} are in {kept}, and the same command runs the others"):
            raise
    summary = summarise(table, type(parts[0]))
    if options.json:
        print(summary.reset_index().to_json(orient="records"))
    else:
        print(summary.round(4).to_string())


def _parts(options: ExperimentOptions) -> Sequence[Any]:
    from gpflow_dwp.lab.experiments.deep_wishart_iterates import DeepWishart
    from gpflow_dwp.lab.experiments.factor_analysis import FactorAnalysis
    from gpflow_dwp.lab.experiments.growing_depth import GrowingDepth
    from gpflow_dwp.lab.experiments.linear_regression import LinearPosterior, LinearPrediction
    from gpflow_dwp.lab.experiments.multi_swag import MultiSWAGOfWishart

    trials, folder = options.trials, options.uci_folder
    if options.what == "factor-analysis":
        return [
            FactorAnalysis(dimension, largest, trials)
            for dimension in options.dimensions
            for largest in _LARGEST
        ]
    if options.what == "linear-posterior":
        return [LinearPosterior(trials)]
    if options.what == "linear-prediction":
        return [LinearPrediction(name, trials, folder) for name in options.datasets]
    places = [
        (name, split, options.steps) for name in options.datasets for split in range(options.splits)
    ]
    if options.what == "deep-wishart":
        return [DeepWishart(*at, uci_folder=folder) for at in places]
    if options.what == "depth":
        kept = options.deepest, options.out.with_suffix(".models")
        return [
            GrowingDepth(*at, model, *kept, uci_folder=folder)
            for at in places
            for model in options.models
        ]
    kept = options.members, options.out.with_suffix(".members")
    return [MultiSWAGOfWishart(*at, *kept, uci_folder=folder) for at in places]
