"""The options of the commands that run a study and report on it."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpflow_dwp.cli.argument_types import assignment, numbers, positive_integer, seed, size
from gpflow_dwp.cli.options import (
    add_config_option,
    add_json_option,
    add_quiet_option,
    add_uci_option,
)

__all__ = ["add_study_options", "add_study_report_options"]

_STUDY_MODELS = (
    *("DGP", "DIWP", "GW", "A", "AB", "VMG"),
    *("GP", "GP-GP", "LV-GP", "LV-GP-GP", "LV-GP-GP-GP", "LV-DWP"),
)


def add_study_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp study``."""
    _add_cell_options(parser.add_argument_group("cells: every combination is run"))
    _add_training_options(parser.add_argument_group("training"))
    _add_process_options(parser.add_argument_group("processes"))
    _add_file_options(parser.add_argument_group("data and output"))


def add_study_report_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp study-report``."""
    parser.add_argument(
        "studies", nargs="+", type=Path, metavar="DIR", help="what study --out wrote"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where tables and figures go (default: report in the first DIR)",
    )
    add_json_option(parser)


def _add_cell_options(cells: argparse._ArgumentGroup) -> None:
    cells.add_argument(
        "--datasets",
        nargs="+",
        required=True,
        metavar="NAME",
        help="UCI data sets: boston concrete energy kin8nm naval power protein wine yacht",
    )
    cells.add_argument(
        "--depths",
        nargs="+",
        type=size,
        default=[2],
        metavar="N",
        help="layers: N - 1 hidden ones and an output GP (default: 2)",
    )
    cells.add_argument(
        "--models",
        nargs="+",
        choices=_STUDY_MODELS,
        default=["DGP", "GW", "A", "AB"],
        metavar="MODEL",
        help="deep GP (DGP), deep inverse Wishart process (DIWP), or deep Wishart process by its "
        "posterior (GW A AB), or matrix-Gaussian network (VMG); with latent variables (LV) or "
        "without a deep GP by its layers (GP GP-GP LV-GP LV-GP-GP LV-GP-GP-GP), or a deep Wishart "
        "process (LV-DWP; default: DGP GW A AB)",
    )
    cells.add_argument(
        "--splits",
        nargs="+",
        type=numbers,
        default=[(0,)],
        metavar="SPLITS",
        help="numbers of splits, such as 0-4 or 0 3 7 or 0-2,5 (default: 0)",
    )


def _add_training_options(training: argparse._ArgumentGroup) -> None:
    training.add_argument(
        "--steps",
        "--num-steps",
        dest="num_steps",
        type=positive_integer,
        metavar="T",
        help="gradient steps (default: 20000, as in the papers on DWPs; VMG: 60000)",
    )
    training.add_argument(
        "--num-inducing",
        type=size,
        metavar="M",
        help="inducing points (default: 100; 128 if cde)",
    )
    training.add_argument(
        "--batch-size",
        type=positive_integer,
        metavar="N",
        help="rows of a minibatch (default: all up to 2000 training rows, 1000 above; 512 if cde; "
        "for VMG 20, or a 50th of the rows if that is more)",
    )
    training.add_argument(
        "--protocol",
        choices=["papers", "fast", "vmg", "cde", "cde-fast"],
        default="papers",
        help="learning rate, annealing and number of draws: papers, for VMG that of its own paper; "
        "fast; cde, that of conditional density estimation with latent variables, which also "
        "scores each row's marginal; or cde-fast, that with the training of fast (default: "
        "%(default)s)",
    )
    training.add_argument(
        "--num-samples",
        type=size,
        metavar="S",
        help="draws that estimate the bound (default: 10, as in the papers, 1 for VMG; 2 if fast; "
        "if cde 1, or 2 for a deep Wishart process)",
    )
    training.add_argument(
        "--importance-samples",
        dest="num_importance_samples",
        type=size,
        default=1,
        metavar="K",
        help="draws of each row's latent variables, in models that have them: more than 1 for the "
        "importance-weighted bound (default: %(default)s)",
    )
    training.add_argument(
        "--kl-annealing-steps",
        type=positive_integer,
        metavar="T",
        help="when the weight of the log ratios reaches 1 (default: 1000, as in the papers, no "
        "annealing for VMG; if fast a sixth of the steps for each hidden layer, at most half; if "
        "cde none, or as fast for a deep Wishart process)",
    )
    training.add_argument(
        "--dtype",
        choices=["float64", "float32"],
        default="float64",
        help="precision (default: %(default)s)",
    )
    training.add_argument(
        "--seed", type=seed, default=0, help="for start and draws (default: %(default)s)"
    )
    training.add_argument(
        "--set",
        dest="options",
        nargs="+",
        type=assignment,
        default=[],
        metavar="NAME=VALUE",
        help="further arguments of the functions that build the models, such as jitter=1e-8",
    )


def _add_process_options(processes: argparse._ArgumentGroup) -> None:
    processes.add_argument(
        "--jobs",
        type=positive_integer,
        default=1,
        metavar="N",
        help="cells that run at a time (default: %(default)s)",
    )
    processes.add_argument(
        "--threads",
        type=positive_integer,
        default=1,
        metavar="N",
        help="threads of each cell (default: %(default)s)",
    )


def _add_file_options(files: argparse._ArgumentGroup) -> None:
    add_uci_option(files)
    files.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="where results are kept; cells that are there already are not run again",
    )
    files.add_argument(
        "--retry-failed", action="store_true", help="run cells again that failed before"
    )
    add_quiet_option(files)
    add_json_option(files)
    add_config_option(files)
