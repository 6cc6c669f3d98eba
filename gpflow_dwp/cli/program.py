"""All commands, what they are called with, and what becomes of errors.

TensorFlow takes seconds to import, so it is only once arguments are right.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from inspect import BoundArguments
from pathlib import Path
from typing import Any, Literal, NoReturn

from cyclopts import App, CycloptsError, Parameter

from gpflow_dwp.cli.errors import TerminatedError, explain

__all__ = ["COMMANDS", "app", "completion", "parse", "run"]

_HELP = """\
Deep Wishart processes for tables of data, on GPflow.

exit codes:

    0    done
    1    training failed; memory or disk is full; or a mistake of ours
    2    something that was given cannot be used; one line says what
    130  ended by Ctrl-C; 128 + N: by signal N

--debug, with any command, shows where in the program an error came up.
"""
_DEBUG = "--debug"

COMMANDS = {
    "fit": "gpflow_dwp.cli.fit:fit",
    "predict": "gpflow_dwp.cli.commands:predict",
    "evaluate": "gpflow_dwp.cli.commands:evaluate",
    "export": "gpflow_dwp.cli.commands:export",
    "info": "gpflow_dwp.cli.commands:info",
    "completion": "gpflow_dwp.cli.program:completion",
}
"""Where each command is declared; nothing heavy is imported there."""


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that completes commands and options in a shell.

    examples:

        eval "$(gpflow-dwp completion bash)"                            # in ~/.bashrc
        gpflow-dwp completion zsh > "${fpath[1]}/_gpflow-dwp"
        gpflow-dwp completion fish > ~/.config/fish/completions/gpflow-dwp.fish

    :param shell: Which shell.
    """
    print(app.generate_completion(prog_name="gpflow-dwp", shell=shell))


def _version() -> str:
    from importlib.metadata import version  # slow to import

    return f"gpflow-dwp {version('gpflow-dwp')}"


def _shown(default: object) -> str | None:
    """A default in the help; words tell of those that are nothing."""
    return None if default is None or default is False or default == () else str(default)


app = App(
    "gpflow-dwp",
    help=_HELP,
    help_format="markdown",
    version=_version,
    default_parameter=Parameter(negative=(), consume_multiple=1, show_default=_shown),
)
"""The command line."""

for _place, (_name, _where) in enumerate(COMMANDS.items()):
    app.command(_where, name=_name, sort_key=_place)


def run(arguments: list[str]) -> int:
    """Run the command; return the exit code, as the help explains it."""
    debug = _DEBUG in arguments
    arguments = [argument for argument in arguments if argument != _DEBUG]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # of what its encoding has not
    try:
        with _ending_signals():
            command, bound = parse(arguments)
            is_help = isinstance(getattr(command, "__self__", None), App)  # or the version
            if is_help and arguments[:1] not in [[name] for name in COMMANDS]:
                for name in COMMANDS:
                    app[name]  # which has the line that the list of commands shows
            code = command(*bound.args, **bound.kwargs) or 0
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
        chain = error.command_chain if isinstance(error, CycloptsError) else arguments[:1]
        print(f"{' '.join(['gpflow-dwp', *(chain or ())])}: {line}", file=sys.stderr)
        return code


def parse(arguments: Sequence[str]) -> tuple[Callable[..., Any], BoundArguments]:
    """Return the function of a command, and what it is called with."""
    command, bound, _ = app.parse_args(arguments, print_error=False, exit_on_error=False)
    bound.apply_defaults()
    return command, bound


@contextlib.contextmanager
def _ending_signals() -> Iterator[None]:
    """Take SIGTERM, and SIGHUP of a terminal that closes, as errors: nothing is left half done.

    Where they have a handler or are ignored, as after nohup, they are left as they are.
    """

    def end(number: int, _: object) -> NoReturn:
        raise TerminatedError(number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    is_main = threading.current_thread() is threading.main_thread()
    taken = [n for n in numbers if is_main and signal.getsignal(n) is signal.SIG_DFL]
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
