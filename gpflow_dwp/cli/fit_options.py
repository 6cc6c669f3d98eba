"""Options of ``gpflow-dwp fit`` for watching, stopping, resuming and repeating a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpflow_dwp.cli.argument_types import fraction, positive_integer

__all__ = [
    "add_column_options",
    "add_config_option",
    "add_configuration_options",
    "add_stopping_options",
]


def add_column_options(group: argparse._ArgumentGroup) -> None:
    """Add what is done to columns that are not all numbers."""
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
        help="fill missing cells of inputs with this of the column's training rows, and of "
        "categories with the most frequent one (default: missing cells are refused)",
    )


def add_stopping_options(parser: argparse.ArgumentParser) -> None:
    """Add what is looked at in the course of training."""
    group = parser.add_argument_group("early stopping and log")
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


def add_configuration_options(parser: argparse.ArgumentParser) -> None:
    """Add where options of ``fit`` come from, if not from the command line."""
    group = parser.add_argument_group("runs again")
    add_config_option(group)
    group.add_argument(
        "--resume",
        type=Path,
        metavar="RUN",
        help="go on with a run that was killed or interrupted, with its own options",
    )


def add_config_option(parser: argparse._ActionsContainer) -> None:
    """Add a file of options."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="YAML or JSON file of options by name, such as the config.yaml that every run writes; "
        "options of the command line go before it",
    )
