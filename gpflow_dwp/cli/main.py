"""Arguments of the command, and what becomes of errors.

TensorFlow takes seconds to import, so commands are imported only once their arguments are right.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from gpflow_dwp.cli.benchmark_options import add_benchmark_options
from gpflow_dwp.cli.completion import print_completion
from gpflow_dwp.cli.configuration import complete_options, parse_options
from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.iterates_options import add_iterates_options
from gpflow_dwp.cli.mnist_options import add_mnist_options
from gpflow_dwp.cli.options import (
    add_evaluate_options,
    add_export_options,
    add_fit_options,
    add_info_options,
    add_predict_options,
)
from gpflow_dwp.cli.study_options import add_study_options, add_study_report_options
from gpflow_dwp.exceptions import NonFiniteBoundError

__all__ = ["main", "make_parser"]


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
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = make_parser()
    options = parse_options(parser, arguments)
    try:
        if options.command == "completion":
            print_completion(parser, options.shell)
            return 0
        return _run(complete_options(parser, options, arguments))
    except UsageError as error:
        print(f"gpflow-dwp {options.command}: error: {error}", file=sys.stderr)
        return 2
    except NonFiniteBoundError as error:
        print(f"gpflow-dwp {options.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"gpflow-dwp {options.command}: interrupted, nothing was written", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    """Run a command whose arguments are right."""
    with _native_log_discarded():
        from gpflow_dwp.cli.benchmark import run_benchmark
        from gpflow_dwp.cli.evaluate import run_evaluate
        from gpflow_dwp.cli.export import run_export
        from gpflow_dwp.cli.fit import run_fit
        from gpflow_dwp.cli.info import run_info
        from gpflow_dwp.cli.iterates import run_iterates
        from gpflow_dwp.cli.mnist import run_mnist
        from gpflow_dwp.cli.predict import run_predict
        from gpflow_dwp.cli.study import run_study, run_study_report

    commands: dict[str, Callable[[argparse.Namespace], int | None]] = {
        "fit": run_fit,
        "predict": run_predict,
        "export": run_export,
        "evaluate": run_evaluate,
        "info": run_info,
        "study": run_study,
        "study-report": run_study_report,
        "benchmark": run_benchmark,
        "iterates": run_iterates,
        "mnist": run_mnist,
    }
    return commands[options.command](options) or 0


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


def make_parser() -> argparse.ArgumentParser:
    """Return what parses the arguments of every command."""
    parser = _Parser(
        prog="gpflow-dwp",
        description="Deep Wishart processes for tables of data, on GPflow.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EXIT_CODES,
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
    add_export_options(
        commands.add_parser(
            "export",
            help="write the model of a run directory for TensorFlow alone",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=_EXPORT_DESCRIPTION,
        )
    )
    add_evaluate_options(
        commands.add_parser(
            "evaluate",
            help="score the model of a run directory on a table with known targets",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=_EVALUATE_DESCRIPTION,
        )
    )
    add_info_options(
        commands.add_parser(
            "info",
            help="say what a run directory or saved model is, and which versions are installed",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=_INFO_DESCRIPTION,
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
            help="measure how fast training is on this machine",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=_BENCHMARK_DESCRIPTION,
        )
    )
    add_iterates_options(
        commands.add_parser(
            "iterates",
            help="rerun experiments with posteriors over training iterates",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=_ITERATES_DESCRIPTION,
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
    completion = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in a shell",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=_COMPLETION_DESCRIPTION,
    )
    completion.add_argument("shell", choices=["bash", "zsh", "tcsh", "fish"], help="which shell")
    return parser


_EXIT_CODES = """\
exit codes:
  0    done
  1    training failed, or a cell of a study
  2    something that was given cannot be used; one line says what
  130  ended by Ctrl-C
"""

_FIT_DESCRIPTION = """\
Train a deep Wishart process, or one of its rivals, on a table and judge it on rows that were held
out, next to linear regression and GPflow's sparse Gaussian process. Without a table it takes
scikit-learn's diabetes data (442 patients, 10 measurements).

examples:
  gpflow-dwp fit
  gpflow-dwp fit houses.csv --target price
  gpflow-dwp fit irises.csv --target species --task classification --depth 2
  gpflow-dwp fit houses.parquet --target price --categorical town style --impute median
  gpflow-dwp fit houses.csv --target price --validation-fraction 0.2 --log log.csv
  gpflow-dwp fit houses.csv --target price --model VMG --hidden-units 50 --depth 2
  gpflow-dwp fit --resume runs/houses-1
  gpflow-dwp fit --config runs/houses-1/config.yaml --seed 1
"""

_PREDICT_DESCRIPTION = """\
Add predictions to a table: mean and 95% interval of each row, or the probability of each class.

example:
  gpflow-dwp predict runs/houses-1 new-houses.csv -o predictions.csv
"""

_EVALUATE_DESCRIPTION = """\
Score the model of a run on a table with known targets: mean log predictive density, root mean
squared error or share of wrong labels, and how honest the uncertainty is.

example:
  gpflow-dwp evaluate runs/houses-1 sold-later.csv --json
"""

_INFO_DESCRIPTION = """\
Say what a run directory or a saved model is: columns, scores, layers, versions. Without one, print
the versions that are installed.

examples:
  gpflow-dwp info runs/houses-1
  gpflow-dwp info --json
"""

_EXPORT_DESCRIPTION = """\
Write the model of a run as a TensorFlow SavedModel, which runs where only TensorFlow is installed.
It takes and gives the units of the table; its signatures are predict_y, predict_f, sample and
log_density, and assets.extra/columns.json names the columns.

example:
  gpflow-dwp export runs/houses-1 -o houses-model
"""

_STUDY_DESCRIPTION = """\
Train deep Gaussian and deep Wishart processes on UCI regression sets by the papers' protocol, each
in a process of its own, and keep the scores of every one as soon as it is done. The same command
resumes a study that was ended; training goes on where it stopped.

examples:
  gpflow-dwp study --datasets yacht --splits 0 --steps 2000 --out studies/short
  gpflow-dwp study --datasets yacht boston --depths 2 5 --splits 0-4 --jobs 2 --out studies/full
  gpflow-dwp study --protocol cde --datasets power --models GP LV-GP-GP --out studies/density
  gpflow-dwp study --config studies/full/config.yaml --seed 1 --out studies/seed-1
"""

_STUDY_REPORT_DESCRIPTION = """\
Print the papers' tables from the results of a study, each number beside the one in print, and write
them as text, CSV and figures.

example:
  gpflow-dwp study-report studies/full
"""

_BENCHMARK_DESCRIPTION = """\
Measure on this machine, in turns, each subject in a process of its own; print medians, half of the
distance of the quartiles, and what is aimed at.

  step    training steps of all models, and the dense linear algebra of a step alone by LAPACK and
          BLAS, and deep GPs of other libraries: ratios, and milliseconds
  predict compiled predictions, and their linear algebra alone
  scale   how the time of a step grows with rows, draws, depth and inducing points: exponents
  memory  peak memory of a step, over the arrays that its reverse pass must keep
  variance  noise of gradients, by the estimator of the bound
  import  what the import of the package adds to that of GPflow

examples:
  gpflow-dwp benchmark step --shapes yacht-5 --models AB GW --out step.json
  gpflow-dwp benchmark step --shapes protein-5 --models AB --dtypes float64 float32
  gpflow-dwp benchmark step --models AB --peers gpflux gpytorch --peer-python peers/bin/python
  gpflow-dwp benchmark predict --shapes yacht-2 --models AB DGP
  gpflow-dwp benchmark scale --figure scale.png
  gpflow-dwp benchmark memory --shapes yacht-5 protein-5
  gpflow-dwp benchmark variance --dataset yacht --depth 2 --csv gradient_variance.csv
  gpflow-dwp benchmark import
"""

_ITERATES_DESCRIPTION = """\
Rerun experiments with posteriors over training iterates, write every result with its provenance,
and print means and standard errors:

  factor-analysis    online and batch factor analysis of vectors drawn from factor models
  linear-posterior   iterates of linear regression beside its exact posterior
  linear-prediction  test errors of averages and ensembles of those iterates
  deep-wishart       test scores of averages and ensembles of a deep Wishart process's iterates

examples:
  gpflow-dwp iterates linear-posterior --out linear-posterior.csv
  gpflow-dwp iterates factor-analysis --dimensions 100 --out factor-analysis.csv
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

_COMPLETION_DESCRIPTION = """\
Print a script that completes commands, options and files of gpflow-dwp in a shell.

examples:
  eval "$(gpflow-dwp completion bash)"                            # in ~/.bashrc
  gpflow-dwp completion zsh > "${fpath[1]}/_gpflow-dwp"
  gpflow-dwp completion fish > ~/.config/fish/completions/gpflow-dwp.fish
"""
