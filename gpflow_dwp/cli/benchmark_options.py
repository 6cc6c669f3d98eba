"""The options of ``gpflow-dwp benchmark``. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpflow_dwp.cli.argument_types import positive_integer, seed
from gpflow_dwp.cli.options import add_quiet_option, add_uci_option

__all__ = ["add_benchmark_options"]

_MODELS = ["GW", "A", "AB", "A-whitened", "DGP"]
_WISHART_MODELS = [model for model in _MODELS if model != "DGP"]
_DTYPES = ["float64", "float32"]
_SHAPES = ["yacht-2", "yacht-5", "protein-5", "large-3"]


def add_benchmark_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be measured, each with its options, to ``gpflow-dwp benchmark``."""
    kinds = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    _add_step_options(kinds.add_parser("step", help="time a step against its linear algebra"))
    _add_predict_options(kinds.add_parser("predict", help="time predictions"))
    _add_scale_options(kinds.add_parser("scale", help="time a step at growing sizes"))
    _add_memory_options(kinds.add_parser("memory", help="measure the peak memory of a step"))
    _add_variance_options(kinds.add_parser("variance", help="measure the noise of gradients"))
    _add_bound_options(kinds.add_parser("bound", help="time training to a bound, by two protocols"))
    _add_precision_options(
        kinds.add_parser("precision", help="compare float32 with float64 at one state")
    )
    _add_common_options(
        kinds.add_parser("import", help="time the import of the package"), turns=7, threads=False
    )


def _add_step_options(parser: argparse.ArgumentParser) -> None:
    _add_shapes(parser)
    _add_models(parser)
    _add_dtypes(parser)
    parser.add_argument(
        "--peers",
        nargs="+",
        choices=["gpflux", "gpytorch"],
        default=[],
        metavar="PEER",
        help="deep GPs of other libraries: gpflux gpytorch (default: none)",
    )
    parser.add_argument(
        "--peer-python",
        metavar="PATH",
        help="interpreter of an environment that has the peers (default: this one)",
    )
    parser.add_argument(
        "--show-floor",
        action="store_true",
        help="print the dense operations of a step instead, and time nothing",
    )
    _add_common_options(parser, turns=15)


def _add_predict_options(parser: argparse.ArgumentParser) -> None:
    _add_shapes(parser)
    _add_models(parser)
    _add_dtypes(parser)
    parser.add_argument(
        "--num-samples",
        type=positive_integer,
        default=100,
        metavar="S",
        help="draws that make up the predictive mixture (default: %(default)s)",
    )
    _add_common_options(parser, turns=9)


def _add_scale_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--axes",
        nargs="+",
        choices=["N", "S", "depth", "M"],
        metavar="AXIS",
        help="what grows: N S depth M (default: all, one after the other)",
    )
    _add_one_model(parser)
    parser.add_argument(
        "--figure", type=Path, metavar="FILE", help="figure to write; its ending says the format"
    )
    _add_common_options(parser, turns=7)


def _add_memory_options(parser: argparse.ArgumentParser) -> None:
    _add_shapes(parser)
    _add_models(parser, _WISHART_MODELS)
    _add_dtypes(parser)
    _add_common_options(parser, turns=5)


def _add_variance_options(parser: argparse.ArgumentParser) -> None:
    _add_training_run(parser, model="AB")
    parser.add_argument(
        "--num-samples",
        nargs="+",
        type=positive_integer,
        default=[1, 2, 5, 10],
        metavar="S",
        help="draws that estimate the bound (default: 1 2 5 10)",
    )
    _add_counts(
        parser,
        ("--num-inducing", 100, "inducing points"),
        ("--num-steps", 2_000, "steps of training between the two measurements"),
        ("--num-gradients", 100, "gradients that each variance is estimated from"),
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="CSV file to write, with every value"
    )
    _add_report_options(parser)


def _add_bound_options(parser: argparse.ArgumentParser) -> None:
    _add_training_run(parser, model="A")
    parser.add_argument(
        "--level",
        type=float,
        metavar="NATS",
        help="bound per datum to stay above (default: the printed one, less 0.02)",
    )
    _add_counts(
        parser,
        ("--num-steps", 3_000, "steps of the default protocol's run"),
        ("--papers-steps", 20_000, "steps of the papers' protocol's run"),
        ("--hold", 1_000, "steps above the level after which a run is ended"),
    )
    _add_threads(parser)
    _add_report_options(parser)


def _add_precision_options(parser: argparse.ArgumentParser) -> None:
    _add_training_run(parser, model="A", depth=5)
    parser.add_argument(
        "--output",
        choices=["pseudo_targets", "regression"],
        help="output layer's posterior (default: regression up to 2000 rows)",
    )
    _add_dtype(parser, "float32")
    _add_counts(
        parser,
        ("--num-steps", 2_000, "steps of training before"),
        ("--num-draws", 50, "estimates that are compared"),
    )
    _add_report_options(parser)


def _add_training_run(parser: argparse.ArgumentParser, *, model: str, depth: int = 2) -> None:
    parser.add_argument(
        "--dataset", default="yacht", metavar="NAME", help="UCI data set (default: %(default)s)"
    )
    parser.add_argument(
        "--split", type=int, default=0, metavar="N", help="its split (default: %(default)s)"
    )
    parser.add_argument(
        "--model",
        choices=_WISHART_MODELS,
        default=model,
        metavar="MODEL",
        help=f"{' '.join(_WISHART_MODELS)} (default: %(default)s)",
    )
    _add_counts(parser, ("--depth", depth, "layers"))
    parser.add_argument("--seed", type=seed, default=0, help="for all draws (default: %(default)s)")
    add_uci_option(parser)


def _add_counts(parser: argparse.ArgumentParser, *counts: tuple[str, int, str]) -> None:
    for name, default, meaning in counts:
        parser.add_argument(
            name,
            type=positive_integer,
            default=default,
            metavar="N",
            help=f"{meaning} (default: %(default)s)",
        )


def _add_shapes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shapes",
        nargs="+",
        choices=_SHAPES,
        default=["yacht-2", "yacht-5"],
        metavar="SHAPE",
        help=f"sizes of a step: {' '.join(_SHAPES)} (default: yacht-2 yacht-5)",
    )


def _add_models(parser: argparse.ArgumentParser, models: list[str] = _MODELS) -> None:
    parser.add_argument(
        "--models",
        nargs="+",
        choices=models,
        default=models,
        metavar="MODEL",
        help=f"{' '.join(models)} (default: all)",
    )


def _add_dtypes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dtypes",
        nargs="+",
        choices=_DTYPES,
        default=["float64"],
        metavar="DTYPE",
        help="float64, float32 or both (default: float64)",
    )


def _add_one_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        choices=_MODELS,
        default="AB",
        help=f"{' '.join(_MODELS)} (default: %(default)s)",
        metavar="MODEL",
    )
    _add_dtype(parser, "float64")


def _add_dtype(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--dtype",
        choices=_DTYPES,
        default=default,
        metavar="DTYPE",
        help="float64 or float32 (default: %(default)s)",
    )


def _add_common_options(
    parser: argparse.ArgumentParser, *, turns: int, threads: bool = True
) -> None:
    _add_counts(parser, ("--turns", turns, "how often each thing is measured"))
    if threads:
        _add_threads(parser)
    _add_report_options(parser)


def _add_threads(parser: argparse.ArgumentParser) -> None:
    _add_counts(parser, ("--threads", 1, "threads of each process"))


def _add_report_options(parser: argparse.ArgumentParser) -> None:
    add_quiet_option(parser)
    parser.add_argument(
        "--json",
        nargs="?",
        type=Path,
        const=True,
        default=False,
        metavar="FILE",
        help="print the result as one line of JSON, or write every value to FILE",
    )
