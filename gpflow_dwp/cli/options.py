"""The options of each command. This module imports nothing heavy, so that help is quick."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpflow_dwp.cli.argument_types import positive_integer, seed
from gpflow_dwp.cli.fit_options import (
    add_column_options,
    add_configuration_options,
    add_stopping_options,
)

__all__ = [
    "add_evaluate_options",
    "add_export_options",
    "add_fit_options",
    "add_info_options",
    "add_json_option",
    "add_predict_options",
]


def add_fit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp fit``."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "table",
        nargs="?",
        type=Path,
        help="CSV file with a header, or Parquet file (default: diabetes)",
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
        type=float,
        default=0.1,
        metavar="FRACTION",
        help="share of rows that are held out (default: %(default)s)",
    )
    add_column_options(data)
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model",
        choices=["DWP", "DGP", "DIWP", "VMG"],
        default="DWP",
        help="deep Wishart process, the deep GP with the same prior, deep inverse Wishart process, "
        "or matrix-Gaussian neural network (default: %(default)s)",
    )
    model.add_argument(
        "--depth",
        type=positive_integer,
        default=3,
        metavar="N",
        help="layers: N - 1 hidden layers and an output GP, or output weights of a VMG (default: "
        "%(default)s)",
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
        "--kernel", metavar="NAME", help="GPflow's name of the kernel (default: SquaredExponential)"
    )
    model.add_argument(
        "--width",
        "--hidden-units",
        type=positive_integer,
        metavar="N",
        help="degrees of freedom of each layer: its number of features in a DGP (default: number "
        "of inputs), of hidden units in a VMG (default: 50)",
    )
    model.add_argument(
        "--num-pseudo-data",
        type=positive_integer,
        metavar="P",
        help="pseudo-data pairs of each layer of a VMG, at most its inputs (default: 10)",
    )
    model.add_argument(
        "--num-inducing",
        type=positive_integer,
        default=100,
        metavar="M",
        help="inducing points, also of the sparse GP that is compared with (default: %(default)s)",
    )
    model.add_argument(
        "--inducing",
        choices=["subset", "kmeans"],
        help="where they start: on training rows or cluster centres (default: subset)",
    )
    model.add_argument(
        "--latent-dim",
        type=positive_integer,
        metavar="W",
        help="latent variables of each row, extra inputs that its target tells of (default: none)",
    )
    training = parser.add_argument_group("training")
    training.add_argument(
        "--num-steps",
        type=positive_integer,
        metavar="T",
        help="gradient steps (default: 3000, where the papers take 20000; 20000 small ones of a "
        "VMG)",
    )
    training.add_argument(
        "--num-samples",
        type=positive_integer,
        metavar="S",
        help="draws that estimate the bound (default: 2; 1 for a VMG)",
    )
    training.add_argument(
        "--importance-samples",
        dest="num_importance_samples",
        type=positive_integer,
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
    add_stopping_options(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="run directory to write (default: runs/NAME-K, with the next free K)",
    )
    output.add_argument("--overwrite", action="store_true", help="replace the run that DIR holds")
    output.add_argument("--quiet", action="store_true", help="show no progress")
    add_json_option(output)
    add_configuration_options(parser)


def add_predict_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp predict``."""
    _add_run_and_table(parser, "CSV or Parquet file with the columns of training")
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="file to write: the table with columns added, Parquet if it ends in .parquet, "
        "else CSV",
    )
    _add_draws(parser)
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")
    add_json_option(parser)


def add_evaluate_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp evaluate``."""
    _add_run_and_table(parser, "CSV or Parquet file with the columns of training and the target")
    _add_draws(parser)
    add_json_option(parser)


def add_info_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp info``."""
    parser.add_argument(
        "run",
        nargs="?",
        type=Path,
        metavar="RUN",
        help="a directory that fit or save_model wrote (default: versions only)",
    )
    add_json_option(parser)


def add_json_option(parser: argparse._ActionsContainer) -> None:
    """Add the option that all commands with one result have."""
    parser.add_argument(
        "--json", action="store_true", help="print the result as one line of JSON, for programs"
    )


def _add_run_and_table(parser: argparse.ArgumentParser, table: str) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a directory that fit wrote")
    parser.add_argument("table", type=Path, help=table)


def _add_draws(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--num-samples",
        type=positive_integer,
        default=100,
        metavar="S",
        help="draws that make up the predictive mixture (default: %(default)s)",
    )
    parser.add_argument("--seed", type=seed, default=0, help="for the draws (default: %(default)s)")


def add_export_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp export``."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a directory that fit wrote")
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="directory to write; must not hold anything",
    )
    parser.add_argument(
        "--num-samples",
        type=positive_integer,
        default=100,
        metavar="S",
        help="draws of the predictive mixture, where a caller says nothing (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=seed,
        default=0,
        help="for the draws, where a caller says nothing (default: %(default)s)",
    )
