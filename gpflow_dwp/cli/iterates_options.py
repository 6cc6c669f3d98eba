"""The options of ``gpflow-dwp iterates``."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpflow_dwp.cli.argument_types import positive_integer
from gpflow_dwp.cli.options import add_json_option, add_quiet_option, add_uci_option

__all__ = ["add_iterates_options"]

_EXPERIMENTS = ("factor-analysis", "linear-posterior", "linear-prediction", "deep-wishart")


def add_iterates_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp iterates``."""
    parser.add_argument("what", choices=_EXPERIMENTS, help="which experiment")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="CSV table; parts that it holds are not run again, and other --trials or --steps than "
        "theirs are refused",
    )
    parser.add_argument(
        "--trials",
        type=positive_integer,
        default=10,
        metavar="N",
        help="seeds of the synthetic experiments, folds of linear-prediction (default: 10)",
    )
    parser.add_argument(
        "--dimensions",
        type=positive_integer,
        nargs="+",
        default=[100, 1000],
        metavar="D",
        help="of factor-analysis (default: 100 1000)",
    )
    parser.add_argument(
        "--datasets",
        nargs="+",
        default=["yacht", "energy", "boston"],
        metavar="NAME",
        help="UCI data sets of the last two experiments (default: yacht energy boston)",
    )
    parser.add_argument(
        "--splits",
        type=positive_integer,
        default=3,
        metavar="N",
        help="first splits of each data set, for deep-wishart (default: 3)",
    )
    parser.add_argument(
        "--steps",
        type=positive_integer,
        default=8_000,
        metavar="T",
        help="training steps before iterates are collected, for deep-wishart (default: 8000)",
    )
    add_uci_option(parser)
    add_quiet_option(parser)
    add_json_option(parser)
