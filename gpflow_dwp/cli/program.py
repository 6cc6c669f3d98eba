"""All commands, what they are called with, and what becomes of errors.

TensorFlow takes seconds to import, so it is only once arguments are right.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, is_dataclass
from inspect import BoundArguments
from pathlib import Path
from typing import Any, Literal, NoReturn

from cyclopts import App, CycloptsError, Parameter

from gpflow_dwp.cli.configuration import read_configuration
from gpflow_dwp.cli.errors import TerminatedError, explain
from gpflow_dwp.cli.outputs import check_outputs
from gpflow_dwp.interrupts import ending_signals

__all__ = ["COMMANDS", "app", "completion", "options_by_name", "parse", "run"]

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
    "predict": "gpflow_dwp.cli.predict:predict",
    "evaluate": "gpflow_dwp.cli.evaluate:evaluate",
    "export": "gpflow_dwp.cli.export:export",
    "info": "gpflow_dwp.cli.info:info",
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
    if default is None or default is False or default == ():
        return None
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


app = App(
    "gpflow-dwp",
    help=_HELP,
    help_format="markdown",
    version=_version,
    config=read_configuration,
    # Of an option that is repeated the last counts.
    default_parameter=Parameter(negative=(), allow_repeating=True, show_default=_shown),
)
"""The command line."""

for _place, (_name, _where) in enumerate(COMMANDS.items()):
    app.command(_where, name=_name, sort_key=_place)


def run(arguments: list[str]) -> int:
    """Run the command.

    :return: The exit code, as the help explains it.
    """
    debug = _DEBUG in arguments
    arguments = [argument for argument in arguments if argument != _DEBUG]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # of what its encoding has not
    try:
        with ending_signals(_end):
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
        chain = error.command_chain if isinstance(error, CycloptsError) else arguments[:1]
        print(f"{' '.join(['gpflow-dwp', *(chain or ())])}: {line}", file=sys.stderr)
        return code


def _run(arguments: list[str]) -> int:
    command, bound = parse(arguments)
    if _is_help(command):
        if not arguments or arguments[0] not in COMMANDS:
            for name in COMMANDS:
                app[name]  # which has the line that the list of commands shows
        command(*bound.args, **bound.kwargs)
        return 0
    check_outputs(arguments[0], options_by_name(bound))
    return command(*bound.args, **bound.kwargs) or 0


def parse(arguments: Sequence[str]) -> tuple[Callable[..., int | None], BoundArguments]:
    """Return the function of a command, and what it is called with.

    :raises CycloptsError: If they cannot be used.
    :raises UsageError: If the file or run that they name cannot be used.
    """
    command, bound, _ = app.parse_args(arguments, print_error=False, exit_on_error=False)
    asked = {*app.help_flags, *app.version_flags} & {*arguments}
    if _is_help(command) and not asked and arguments:
        raise CycloptsError(msg="a COMMAND is missing", command_chain=arguments)
    bound.apply_defaults()
    return command, bound


def _is_help(command: Callable[..., object]) -> bool:
    """Whether it is none of ours, but what shows help or version."""
    return isinstance(getattr(command, "__self__", None), App)


def options_by_name(bound: BoundArguments) -> dict[str, Any]:
    """Return the options of a command, also those that it takes as one object."""
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        found |= asdict(value) if is_dataclass(value) else {name: value}  # type: ignore[arg-type]
    return found


def _end(number: int, _: object) -> NoReturn:
    raise TerminatedError(number)


def _discard_output() -> None:
    """Forget output that could not be written, which Python would try again as it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
