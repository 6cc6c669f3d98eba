"""The options of ``gpflow-dwp benchmark``."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpflow_dwp.cli.argument_types import positive_integer
from gpflow_dwp.cli.options import add_json_option

__all__ = ["add_benchmark_options"]


def add_benchmark_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp benchmark``."""
    parser.add_argument("what", choices=["step", "import"], help="what to time")
    parser.add_argument(
        "--shapes",
        nargs="+",
        choices=["yacht-2", "yacht-5", "protein-5", "large-3"],
        metavar="SHAPE",
        help="sizes of a step: yacht-2 yacht-5 protein-5 large-3 (default: yacht-2 yacht-5)",
    )
    parser.add_argument(
        "--models",
        nargs="+",
        choices=["GW", "A", "AB", "A-whitened", "DGP"],
        metavar="MODEL",
        help="GW A AB A-whitened DGP (default: all)",
    )
    parser.add_argument(
        "--dtypes",
        nargs="+",
        choices=["float64", "float32"],
        default=["float64"],
        metavar="DTYPE",
        help="float64, float32 or both (default: float64)",
    )
    parser.add_argument(
        "--turns",
        type=positive_integer,
        default=15,
        metavar="N",
        help="how often each thing is timed (default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=positive_integer,
        default=1,
        metavar="N",
        help="threads of each process (default: %(default)s)",
    )
    parser.add_argument(
        "--show-floor",
        action="store_true",
        help="print the dense operations of a step instead, and time nothing",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="JSON file to write, with every time"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    add_json_option(parser)
