"""The options of commands on a trained run, and those that several commands share.

This and all modules of options import nothing heavy, so that help is quick.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gpflow_dwp.cli.argument_types import seed, size

__all__ = [
    "add_config_option",
    "add_debug_option",
    "add_evaluate_options",
    "add_export_options",
    "add_info_options",
    "add_json_option",
    "add_predict_options",
    "add_quiet_option",
    "add_uci_option",
]


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
        help="a directory that fit, mnist or save_model wrote (default: versions only)",
    )
    add_json_option(parser)


def _add_run_and_table(parser: argparse.ArgumentParser, table: str) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a directory that fit wrote")
    parser.add_argument("table", type=Path, help=table)


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
    _add_draws(parser, ", where a caller says nothing")
    add_json_option(parser)


def _add_draws(parser: argparse.ArgumentParser, when: str = "") -> None:
    parser.add_argument(
        "--num-samples",
        type=size,
        default=100,
        metavar="S",
        help=f"draws that make up the predictive mixture{when} (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=seed, default=0, help=f"for the draws{when} (default: %(default)s)"
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


def add_debug_option(parser: argparse._ActionsContainer) -> None:
    """Add the option of all commands for who looks for a mistake in them."""
    parser.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show where in the program an error came up",
    )


def add_json_option(parser: argparse._ActionsContainer) -> None:
    """Add the option of all commands with a result."""
    parser.add_argument(
        "--json", action="store_true", help="print the result as one line of JSON, for programs"
    )


def add_quiet_option(parser: argparse._ActionsContainer) -> None:
    """Add the option of all commands that take a while."""
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def add_uci_option(parser: argparse._ActionsContainer) -> None:
    """Add where UCI data sets are."""
    parser.add_argument(
        "--uci-folder",
        type=Path,
        metavar="DIR",
        help="folder of the data sets (default: that of GPFLOW_DWP_UCI, else they are downloaded)",
    )
