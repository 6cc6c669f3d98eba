"""The options of the command that compares models by their defaults."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpflow_dwp.cli.argument_types import assignment, numbers, positive_integer
from gpflow_dwp.cli.options import (
    add_config_option,
    add_json_option,
    add_quiet_option,
    add_uci_option,
)

__all__ = ["add_compare_options"]

_REGRESSION_TABLES = (
    *("yacht", "boston", "energy", "concrete", "kin8nm", "power", "protein", "diabetes"),
    *("housing", "diamond", "clothing", "slid", "star98", "cpus", "quakes", "birthwt"),
)
_CLASSIFICATION_TABLES = ("breast_cancer", "wine", "digits")
_TABLES = (*_REGRESSION_TABLES, *_CLASSIFICATION_TABLES)
_MODELS = (
    *("exact-gp", "bayesian-ridge", "logistic", "hist-gb", "random-forest", "ngboost"),
    *("svc", "svgp", "dwp"),
)


def add_compare_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp compare``."""
    cells = parser.add_argument_group("cells: every combination that there is, is run")
    cells.add_argument(
        "--tables",
        nargs="+",
        choices=_TABLES,
        default=list(_TABLES),
        metavar="NAME",
        help=f"regression: {' '.join(_REGRESSION_TABLES)}; classification: "
        f"{' '.join(_CLASSIFICATION_TABLES)} (default: all)",
    )
    cells.add_argument(
        "--models",
        nargs="+",
        choices=_MODELS,
        default=list(_MODELS),
        metavar="MODEL",
        help=f"{' '.join(_MODELS)}, each for the tables of its tasks (default: all)",
    )
    cells.add_argument(
        "--splits",
        nargs="+",
        type=numbers,
        default=[(0, 1, 2, 3, 4)],
        metavar="SPLITS",
        help="numbers of splits, such as 0-4 or 0 3 7: 0-4 are for claims, 5-9 for choosing "
        "defaults (default: 0-4)",
    )
    own = parser.add_argument_group("the deep Wishart process, dwp")
    own.add_argument(
        "--set",
        dest="settings",
        nargs="+",
        type=assignment,
        default=[],
        metavar="NAME=VALUE",
        help="arguments of the estimator in place of its defaults, such as depth=2 num_steps=1000",
    )
    own.add_argument(
        "--label",
        metavar="NAME",
        help="what the report calls it (default: dwp, and the settings)",
    )
    parser.add_argument(
        "--jobs",
        type=positive_integer,
        default=1,
        metavar="N",
        help="cells that run at a time, one thread each (default: %(default)s)",
    )
    add_uci_option(parser)
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="where results and reports are kept; cells that are there already are not run again",
    )
    parser.add_argument(
        "--retry-failed", action="store_true", help="run cells again that failed before"
    )
    add_quiet_option(parser)
    add_json_option(parser)
    add_config_option(parser)
