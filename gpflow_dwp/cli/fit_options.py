"""The options of ``gpflow-dwp fit``."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpflow_dwp.cli.argument_types import depth, fraction, positive_integer, seed, size
from gpflow_dwp.cli.options import add_config_option, add_json_option, add_quiet_option

__all__ = ["add_fit_options"]


def add_fit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp fit``."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "table",
        nargs="?",
        type=Path,
        help="CSV file with a header, or Parquet file (default: yacht)",
    )
    data.add_argument("--target", metavar="COLUMN", help="the column to predict")
    data.add_argument(
        "--task",
        choices=["regression", "classification"],
        default="regression",
        help="what the target is: a number or a label (default: %(default)s)",
    )
    data.add_argument(
        "--test-fraction",
        type=fraction,
        default=0.1,
        metavar="FRACTION",
        help="share of rows that are held out (default: %(default)s)",
    )
    _add_column_options(data)
    _add_model_options(parser.add_argument_group("model"))
    _add_training_options(parser.add_argument_group("training"))
    _add_stopping_options(parser.add_argument_group("early stopping and log"))
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="run directory to write (default: runs/NAME-K, with the next free K)",
    )
    output.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the run that DIR holds, but no other file in it, and the file of --log; "
        "both are back if training fails, and an unfinished run that is replaced is kept until "
        "the new one is written, also where that is interrupted and goes on by --resume",
    )
    add_quiet_option(output)
    add_json_option(output)
    _add_configuration_options(parser)


def _add_model_options(model: argparse._ArgumentGroup) -> None:
    model.add_argument(
        "--model",
        choices=["DWP", "DGP", "DIWP", "VMG"],
        default="DWP",
        help="deep Wishart process, the deep GP with the same prior, deep inverse Wishart process, "
        "or matrix-Gaussian neural network (default: %(default)s)",
    )
    model.add_argument(
        "--depth",
        type=depth,
        metavar="N",
        help="layers: N - 1 hidden layers and an output GP, or output weights of a VMG; auto for a "
        "DWP whose depth, kernel and warp are chosen by the bound (default: auto; 3 for other "
        "models and with --latent-dim, --validation-fraction or --log, which are for one model)",
    )
    model.add_argument(
        "--posterior",
        choices=["AB", "A", "GW"],
        help="family of approximate posteriors of a DWP (default: AB)",
    )
    model.add_argument(
        "--whiten", action="store_true", help="posteriors of a DWP relative to the prior's scale"
    )
    model.add_argument(
        "--output-posterior",
        choices=["pseudo_targets", "regression"],
        help="what the posterior of a process's output layer comes from: learned pseudo-targets, "
        "or a regression on all data, which takes far fewer steps (default: regression for "
        "numbers, up to 2000 training rows, without minibatches and latent variables)",
    )
    model.add_argument(
        "--warp",
        action="store_true",
        help="noise of a process that is Gaussian in a learned function of the target, and not in "
        "the target itself: for targets that are skewed, or whose noise grows with them (with "
        "--depth auto: where it pays)",
    )
    model.add_argument(
        "--noise",
        choices=["gaussian", "student_t"],
        help="how a process's targets scatter: student_t for tails that are learned, of tables in "
        "which a few rows lie far off (default: gaussian; with --depth auto: what has the higher "
        "bound)",
    )
    model.add_argument(
        "--kernel",
        metavar="NAME",
        help="GPflow's name of the kernel (default: SquaredExponential; with --depth auto the "
        "best of three)",
    )
    model.add_argument(
        "--width",
        "--hidden-units",
        type=size,
        metavar="N",
        help="degrees of freedom of each layer: its number of features in a DGP (default: number "
        "of inputs), of hidden units in a VMG (default: 50)",
    )
    model.add_argument(
        "--num-pseudo-data",
        type=size,
        metavar="P",
        help="pseudo-data pairs of each layer of a VMG, at most its inputs (default: 10)",
    )
    model.add_argument(
        "--num-inducing",
        type=size,
        metavar="M",
        help="inducing points, also of the sparse GP that is compared with (default: 100; with "
        "--depth auto more in a single layer)",
    )
    model.add_argument(
        "--inducing",
        choices=["subset", "kmeans"],
        help="where they start: on training rows or cluster centres (default: subset)",
    )
    model.add_argument(
        "--latent-dim",
        type=size,
        metavar="W",
        help="latent variables of each row, extra inputs that its target tells of (default: none)",
    )


def _add_training_options(training: argparse._ArgumentGroup) -> None:
    training.add_argument(
        "--num-steps",
        type=positive_integer,
        metavar="T",
        help="gradient steps (default: 3000, where the papers take 20000; 20000 small ones of a "
        "VMG; with --depth auto 1000 of each model of several layers)",
    )
    training.add_argument(
        "--num-samples",
        type=size,
        metavar="S",
        help="draws that estimate the bound (default: 2; 1 for a VMG)",
    )
    training.add_argument(
        "--importance-samples",
        dest="num_importance_samples",
        type=size,
        default=1,
        metavar="K",
        help="draws of each row's latent variables: more than 1 for the importance-weighted bound "
        "(default: %(default)s)",
    )
    training.add_argument(
        "--batch-size",
        type=positive_integer,
        metavar="N",
        help="rows of a minibatch (default: all up to 2000 rows, 1000 above; for a VMG 20, or a "
        "50th of the rows if that is more)",
    )
    training.add_argument(
        "--seed", type=seed, default=0, help="for split, start and draws (default: %(default)s)"
    )


def _add_column_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--columns",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="the inputs (default: every column but the target)",
    )
    group.add_argument(
        "--drop",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="columns that are no inputs, such as names of rows",
    )
    group.add_argument(
        "--categorical",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="inputs that hold categories, for each of which the model gets a column of 0 and 1",
    )
    group.add_argument(
        "--impute",
        choices=["mean", "median", "most_frequent"],
        help="fill missing numbers of inputs with this of the column's training rows (default: "
        "they are refused); a missing category is one of its own in any case",
    )


def _add_stopping_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--validation-fraction",
        type=fraction,
        metavar="FRACTION",
        help="hold out this share of the training rows, end training when they are predicted no "
        "better, and keep the best parameters (default: no early stopping)",
    )
    group.add_argument(
        "--validation-metric",
        choices=["log_density", "rmse"],
        help="what is to get better (default: log_density)",
    )
    group.add_argument(
        "--patience",
        type=positive_integer,
        metavar="N",
        help="after how many looks that found nothing better training ends (default: 10)",
    )
    group.add_argument(
        "--callback-interval",
        type=positive_integer,
        default=100,
        metavar="T",
        help="steps between two looks, and two rows of the log (default: %(default)s)",
    )
    group.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="file to write the bound to in the course of training, in standardised units: .csv, "
        "or .jsonl for JSON lines",
    )


def _add_configuration_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("runs again")
    add_config_option(group)
    group.add_argument(
        "--resume",
        type=Path,
        metavar="RUN",
        help="go on with a run that was killed or interrupted, with its own options",
    )
