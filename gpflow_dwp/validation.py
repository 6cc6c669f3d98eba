"""Checks of arguments that several parts of the package make."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable

__all__ = ["check_choice", "check_instance", "check_integers", "check_not_negative", "check_path"]


def check_integers(*, at_least: int = 1, **arguments: object) -> None:
    """Refuse arguments that are not integers, or too small.

    :param at_least: The smallest value that is allowed.
    :param arguments: Values by the names that the caller gave them.
    :raises ValueError: If a value is not an integer of at least ``at_least``; the message names it.
    """
    wanted = "a positive integer" if at_least == 1 else f"an integer of at least {at_least}"
    for name, value in arguments.items():
        is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not is_integer or value < at_least:  # type: ignore[operator]
            raise ValueError(f"{name} must be {wanted}, got {value!r}.")


def check_not_negative(**arguments: object) -> None:
    """Refuse arguments that are not numbers, or below zero.

    :param arguments: Values by the names that the caller gave them.
    :raises ValueError: If a value is not a number of at least 0; the message names it.
    """
    for name, value in arguments.items():
        if not isinstance(value, numbers.Real):
            raise ValueError(f"{name} must be a number, got {value!r}.")
        if not float(value) >= 0.0:
            raise ValueError(f"{name} must not be negative, got {value}.")


def check_choice(choices: Iterable[str], **arguments: object) -> None:
    """Refuse arguments that are none of the names to choose from.

    :param choices: The names.
    :param arguments: Values by the names that the caller gave them.
    :raises ValueError: If a value is not among the choices; the message lists them.
    """
    names = tuple(choices)
    for name, value in arguments.items():
        if value not in names:
            raise ValueError(f"{name} must be one of {', '.join(names)}, got {value!r}.")


def check_instance(kind: type, **arguments: object) -> None:
    """Refuse arguments of another class.

    :param kind: The class.
    :param arguments: Values by the names that the caller gave them.
    :raises ValueError: If a value is no instance of it; the message names both classes.
    """
    for name, value in arguments.items():
        if not isinstance(value, kind):
            raise ValueError(
                f"{name} must be an instance of {kind.__name__}, got {type(value).__name__}."
            )


def check_path(**arguments: object) -> None:
    """Refuse arguments that are no paths.

    :param arguments: Values by the names that the caller gave them.
    :raises ValueError: If a value is neither text nor a path; the message names it.
    """
    for name, value in arguments.items():
        if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
            raise ValueError(f"{name} must be a path, got {value!r}.")
