"""``gpflow-dwp completion``: a script that completes commands and options in a shell."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpflow_dwp.cli.errors import user_mistakes
from gpflow_dwp.optional import import_optional

__all__ = ["add_completion_options", "print_completion"]


def add_completion_options(parser: argparse.ArgumentParser) -> None:
    """Add the argument of ``gpflow-dwp completion``."""
    parser.add_argument("shell", choices=["bash", "zsh", "tcsh", "fish"], help="which shell")


def print_completion(parser: argparse.ArgumentParser, shell: str) -> None:
    """Print the script.

    :param parser: Of all commands.
    :param shell: "bash", "zsh", "tcsh" or "fish".
    :raises UsageError: If shtab is not installed.
    """
    with user_mistakes():
        shtab = import_optional("shtab", "cli")
    (commands,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    for command in commands.choices.values():
        for action in command._actions:
            if action.type is Path:
                directory = action.metavar in ("DIR", "RUN")
                action.complete = shtab.DIRECTORY if directory else shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell))
