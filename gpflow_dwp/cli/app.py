"""All commands, each imported where its signature is needed."""

from __future__ import annotations

from typing import Literal

from cyclopts import App, Parameter

from gpflow_dwp.cli.configuration import read_configuration

__all__ = ["COMMANDS", "app", "completion"]

_HELP = """\
Deep Wishart processes for tables of data, on GPflow.

exit codes:

    0    done
    1    training failed, or a cell of a study or comparison; memory or disk
         is full; or a mistake of ours
    2    something that was given cannot be used; one line says what
    130  ended by Ctrl-C; 128 + N: by signal N

--debug, with any command, shows where in the program an error came up.
"""

COMMANDS = {
    "fit": "fit_options:fit",
    "predict": "predict:predict",
    "evaluate": "evaluate:evaluate",
    "export": "export:export",
    "info": "info:info",
    "study": "study:study",
    "study-report": "study:study_report",
    "compare": "compare:compare",
    "benchmark": "benchmark:benchmark",
    "iterates": "iterates:iterates",
    "mnist": "mnist:mnist",
    "completion": "app:completion",
}
"""Where in this package each command is declared; nothing heavy is imported there."""


def _shown(default: object) -> str | None:
    """A default in the help; words tell of those that are nothing."""
    if default is None or default is False or default == ():
        return None
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _version() -> str:
    from importlib.metadata import version  # slow to import

    return f"gpflow-dwp {version('gpflow-dwp')}"


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that completes commands and options in a shell.

    examples:

        eval "$(gpflow-dwp completion bash)"                            # in ~/.bashrc
        gpflow-dwp completion zsh > "${fpath[1]}/_gpflow-dwp"
        gpflow-dwp completion fish > ~/.config/fish/completions/gpflow-dwp.fish

    :param shell: Which shell.
    """
    print(app.generate_completion(prog_name="gpflow-dwp", shell=shell))


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
    app.command(f"gpflow_dwp.cli.{_where}", name=_name, sort_key=_place)
