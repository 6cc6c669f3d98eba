"""The options of ``gpflow-dwp mnist``."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpflow_dwp.cli.argument_types import positive_integer, seed
from gpflow_dwp.cli.options import add_config_option, add_json_option, add_quiet_option

__all__ = ["add_mnist_options"]


def add_mnist_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp mnist``."""
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="folder of MNIST's four idx files (default: that of GPFLOW_DWP_MNIST, else they are "
        "downloaded)",
    )
    parser.add_argument(
        "--hidden",
        nargs="+",
        type=positive_integer,
        default=[150, 150, 150],
        metavar="N",
        help="units of each hidden layer (default: 150 150 150)",
    )
    parser.add_argument(
        "--num-pseudo-data",
        type=positive_integer,
        default=50,
        metavar="P",
        help="pseudo-data pairs of each layer (default: %(default)s; the paper tunes them, up to "
        "150)",
    )
    parser.add_argument(
        "--largest-dropout",
        type=float,
        default=0.25,
        metavar="RATE",
        help="upper bound of the pseudo-data's dropout rate (default: %(default)s)",
    )
    parser.add_argument(
        "--validation-rows",
        type=positive_integer,
        default=10_000,
        metavar="N",
        help="last training images, which are not trained on (default: %(default)s)",
    )
    parser.add_argument(
        "--epochs",
        type=positive_integer,
        default=100,
        metavar="N",
        help="passes over the other images (default: %(default)s)",
    )
    parser.add_argument(
        "--batch-size",
        type=positive_integer,
        default=200,
        metavar="N",
        help="images of a minibatch (default: %(default)s)",
    )
    parser.add_argument(
        "--learning-rate",
        type=float,
        default=1e-3,
        metavar="RATE",
        help="of Adam at the start; it falls to a hundredth (default: %(default)s)",
    )
    parser.add_argument(
        "--prediction-samples",
        type=positive_integer,
        default=100,
        metavar="S",
        help="draws that make up a prediction (default: %(default)s)",
    )
    parser.add_argument(
        "--dtype",
        choices=["float32", "float64"],
        default="float32",
        help="precision (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=seed,
        default=0,
        metavar="N",
        help="for start, minibatches and draws (default: %(default)s)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where model and results go (default: nowhere)"
    )
    add_config_option(parser)
    add_quiet_option(parser)
    add_json_option(parser)
