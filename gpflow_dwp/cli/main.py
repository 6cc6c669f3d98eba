"""Arguments of the command, and what becomes of errors.

TensorFlow takes seconds to import, so commands are imported only once their arguments are right.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from gpflow_dwp.cli.benchmark_options import add_benchmark_options
from gpflow_dwp.cli.compare_options import add_compare_options
from gpflow_dwp.cli.completion import add_completion_options, print_completion
from gpflow_dwp.cli.configuration import complete_options, parse_options
from gpflow_dwp.cli.descriptions import COMMANDS, EXIT_CODES
from gpflow_dwp.cli.errors import TerminatedError, explain
from gpflow_dwp.cli.fit_options import add_fit_options
from gpflow_dwp.cli.iterates_options import add_iterates_options
from gpflow_dwp.cli.mnist_options import add_mnist_options
from gpflow_dwp.cli.options import (
    add_debug_option,
    add_evaluate_options,
    add_export_options,
    add_info_options,
    add_predict_options,
)
from gpflow_dwp.cli.outputs import check_outputs
from gpflow_dwp.cli.study_options import add_study_options, add_study_report_options

__all__ = ["main", "make_parser"]

_ADD_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "fit": add_fit_options,
    "predict": add_predict_options,
    "evaluate": add_evaluate_options,
    "export": add_export_options,
    "info": add_info_options,
    "study": add_study_options,
    "study-report": add_study_report_options,
    "compare": add_compare_options,
    "benchmark": add_benchmark_options,
    "iterates": add_iterates_options,
    "mnist": add_mnist_options,
    "completion": add_completion_options,
}

_DEBUG = "--debug"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    :param arguments: Command-line arguments; None for those of the process.
    :return: The exit code, as :data:`EXIT_CODES` explains it.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    debug = _DEBUG in arguments
    arguments = [argument for argument in arguments if argument != _DEBUG]
    _print_any_text()
    try:
        with _signals_as_errors():
            code = _run(arguments)
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # who reads the output, such as head, has seen enough
        _discard_output()
        return 1
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            traceback.print_exception(error)
        code, line = explain(error)
        _discard_output()
        print(f"gpflow-dwp {next(iter(arguments), '')}: {line}", file=sys.stderr)
        return code


@contextlib.contextmanager
def _signals_as_errors() -> Iterator[None]:
    """Let what asks the process to end be an error, so that nothing is left half done."""

    def end(number: int, frame: object) -> NoReturn:
        raise TerminatedError(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # What is ignored, as after nohup, stays so.
    taken = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _discard_output() -> None:
    """Forget output that could not be written, which Python would try again as it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _print_any_text() -> None:
    """Have output show what its encoding has no character for, in place of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(arguments: list[str]) -> int:
    parser = make_parser()
    options = parse_options(parser, arguments)
    if options.command == "completion":
        print_completion(parser, options.shell)
        return 0
    options = complete_options(parser, options, arguments)
    check_outputs(options)
    with _native_log_discarded():
        from gpflow_dwp.cli.benchmark import run_benchmark
        from gpflow_dwp.cli.compare import run_compare
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
        "compare": run_compare,
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
    layout = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="gpflow-dwp",
        description="Deep Wishart processes for tables of data, on GPflow.",
        formatter_class=layout,
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('gpflow-dwp')}")
    add_debug_option(parser)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (line, text) in COMMANDS.items():
        command = commands.add_parser(name, help=line, formatter_class=layout, description=text)
        _ADD_OPTIONS[name](command)
        add_debug_option(command)
    return parser
