"""Arguments of the command, and what becomes of errors.

TensorFlow takes seconds to import, so commands are imported only once their arguments are right.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from gpflow_dwp.cli.benchmark_options import add_benchmark_options
from gpflow_dwp.cli.mnist_options import add_mnist_options
from gpflow_dwp.cli.options import (
    add_fit_options,
    add_predict_options,
    add_study_options,
    add_study_report_options,
)

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    :param arguments: Command-line arguments; None for those of the process.
    :return: The exit code: 0, 1 where training or a cell of a study failed, 2 for a user's mistake,
        130 for Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    with _native_log_discarded():
        from gpflow_dwp.cli.benchmark import run_benchmark
        from gpflow_dwp.cli.errors import UsageError
        from gpflow_dwp.cli.fit import run_fit
        from gpflow_dwp.cli.mnist import run_mnist
        from gpflow_dwp.cli.predict import run_predict
        from gpflow_dwp.cli.study import run_study, run_study_report
        from gpflow_dwp.exceptions import NonFiniteBoundError

    try:
        if options.command == "study":
            return run_study(options)
        run = {
            "fit": run_fit,
            "predict": run_predict,
            "study-report": run_study_report,
            "benchmark": run_benchmark,
            "mnist": run_mnist,
        }
        run[options.command](options)
    except UsageError as error:
        print(f"gpflow-dwp {options.command}: error: {error}", file=sys.stderr)
        return 2
    except NonFiniteBoundError as error:
        print(f"gpflow-dwp {options.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"gpflow-dwp {options.command}: interrupted, nothing was written", file=sys.stderr)
        return 130
    return 0


@contextlib.contextmanager
def _native_log_discarded() -> Iterator[None]:
    """Discard what TensorFlow's libraries write to the process's standard error as they load.

    They report on instruction sets and missing GPUs before any log level is obeyed, which would
    drown the one line that tells of a mistake.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        import tensorflow as tf

        tf.config.list_physical_devices()  # looking for GPUs is what writes most
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gpflow-dwp", description="Deep Wishart processes for tables of data, on GPflow."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_fit_options(
        commands.add_parser(
            "fit",
            help="train on a table, compare with simpler models, write a run directory",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=_FIT_DESCRIPTION,
        )
    )
    add_predict_options(
        commands.add_parser(
            "predict",
            help="add predictions to a table, with the model of a run directory",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=_PREDICT_DESCRIPTION,
        )
    )
    add_study_options(
        commands.add_parser(
            "study",
            help="rerun cells of the papers' comparison on UCI data sets",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=_STUDY_DESCRIPTION,
        )
    )
    add_study_report_options(
        commands.add_parser(
            "study-report",
            help="put the results of a study beside those that the papers print",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=_STUDY_REPORT_DESCRIPTION,
        )
    )
    add_benchmark_options(
        commands.add_parser(
            "benchmark",
            help="time training steps against their linear algebra alone, on this machine",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=_BENCHMARK_DESCRIPTION,
        )
    )
    add_mnist_options(
        commands.add_parser(
            "mnist",
            help="classify handwritten digits with a matrix-Gaussian network",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=_MNIST_DESCRIPTION,
        )
    )
    return parser


_FIT_DESCRIPTION = """\
Train a deep Wishart process, or one of its rivals, on a table and judge it on rows that were held
out, next to linear regression and GPflow's sparse Gaussian process. Without a table it takes
scikit-learn's diabetes data (442 patients, 10 measurements).

examples:
  gpflow-dwp fit
  gpflow-dwp fit houses.csv --target price
  gpflow-dwp fit irises.csv --target species --task classification --depth 2
  gpflow-dwp fit houses.csv --target price --model VMG --hidden-units 50 --depth 2
"""

_PREDICT_DESCRIPTION = """\
Add predictions to a table: mean and 95% interval of each row, or the probability of each class.

example:
  gpflow-dwp predict runs/houses-1 new-houses.csv -o predictions.csv
"""

_STUDY_DESCRIPTION = """\
Train deep Gaussian and deep Wishart processes on UCI regression sets by the papers' protocol, each
in a process of its own, and keep the scores of every one as soon as it is done. The same command
resumes a study that was ended; training goes on where it stopped.

examples:
  gpflow-dwp study --datasets yacht --splits 0 --steps 2000 --out studies/short
  gpflow-dwp study --datasets yacht boston --depths 2 5 --splits 0-4 --jobs 2 --out studies/full
"""

_STUDY_REPORT_DESCRIPTION = """\
Print the papers' tables from the results of a study, each number beside the one in print, and write
them as text, CSV and figures.

example:
  gpflow-dwp study-report studies/full
"""

_BENCHMARK_DESCRIPTION = """\
Time training steps of all models, and the dense linear algebra of a step alone by LAPACK and BLAS,
in turns, each in a process of its own; print ratios, and times in milliseconds. Or time what the
import of the package adds to that of GPflow.

examples:
  gpflow-dwp benchmark step --shapes yacht-5 --models AB GW --json step.json
  gpflow-dwp benchmark step --shapes protein-5 --models AB --dtypes float64 float32
  gpflow-dwp benchmark import
"""

_MNIST_DESCRIPTION = """\
Train a matrix-Gaussian network on MNIST by the protocol of Louizos and Welling (2016): the last
10,000 training images are held out, to choose settings by; inputs are the 784 pixels, in no order.
Prints the errors of validation and test images. An epoch of 150 150 150 takes about a minute on a
CPU core.

examples:
  gpflow-dwp mnist --hidden 150 150 150
  gpflow-dwp mnist --hidden 400 400 --num-pseudo-data 100 --folder data/mnist --out runs/mnist-400
"""
