"""The options of ``gpflow-dwp mnist``."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpflow_dwp.cli.argument_types import positive_integer, seed
from gpflow_dwp.cli.options import add_config_option, add_json_option, add_quiet_option

__all__ = ["add_mnist_options"]


def add_mnist_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gpflow-dwp mnist``."""
    _add_model_options(parser.add_argument_group("model"))
    _add_training_options(parser.add_argument_group("training and prediction"))
    _add_output_options(parser.add_argument_group("data and output"))


def _add_model_options(model: argparse._ArgumentGroup) -> None:
    model.add_argument(
        "--hidden",
        nargs="+",
        type=positive_integer,
        default=[150, 150, 150],
        metavar="N",
        help="units of each hidden layer (default: 150 150 150)",
    )
    model.add_argument(
        "--num-pseudo-data",
        type=positive_integer,
        default=50,
        metavar="P",
        help="pseudo-data pairs of each layer (default: %(default)s; the paper tunes them, up to "
        "150)",
    )
    model.add_argument(
        "--largest-dropout",
        type=float,
        default=0.25,
        metavar="RATE",
        help="upper bound of the pseudo-data's dropout rate (default: %(default)s)",
    )
    model.add_argument(
        "--dtype",
        choices=["float32", "float64"],
        default="float32",
        help="precision (default: %(default)s)",
    )


def _add_training_options(training: argparse._ArgumentGroup) -> None:
    training.add_argument(
        "--validation-rows",
        type=positive_integer,
        default=10_000,
        metavar="N",
        help="last training images, which are not trained on (default: %(default)s)",
    )
    training.add_argument(
        "--epochs",
        type=positive_integer,
        default=100,
        metavar="N",
        help="passes over the other images (default: %(default)s)",
    )
    training.add_argument(
        "--batch-size",
        type=positive_integer,
        default=200,
        metavar="N",
        help="images of a minibatch (default: %(default)s)",
    )
    training.add_argument(
        "--learning-rate",
        type=float,
        default=1e-3,
        metavar="RATE",
        help="of Adam at the start; it falls to a hundredth (default: %(default)s)",
    )
    training.add_argument(
        "--prediction-samples",
        type=positive_integer,
        default=100,
        metavar="S",
        help="draws that make up a prediction (default: %(default)s)",
    )
    training.add_argument(
        "--seed",
        type=seed,
        default=0,
        metavar="N",
        help="for start, minibatches and draws (default: %(default)s)",
    )


def _add_output_options(output: argparse._ArgumentGroup) -> None:
    output.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="folder of MNIST's four idx files (default: that of GPFLOW_DWP_MNIST, else they are "
        "downloaded)",
    )
    output.add_argument(
        "--out", type=Path, metavar="DIR", help="where model and results go (default: nowhere)"
    )
    add_config_option(output)
    add_quiet_option(output)
    add_json_option(output)
