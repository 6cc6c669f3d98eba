"""What the command line's arguments are made of: text to values, or one line that says why not."""

from __future__ import annotations

import argparse
import json

__all__ = ["assignment", "depth", "fraction", "numbers", "positive_integer", "seed", "size"]

_LARGEST = 1_000_000


def positive_integer(text: str) -> int:
    """Read an argument that must be a positive integer.

    :raises ArgumentTypeError: If it is not.
    """
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return value


def size(text: str) -> int:
    """Read a number of draws, layers or columns: what arrays of this size are made for.

    :raises ArgumentTypeError: If it is not an integer from 1 to a million.
    """
    value = positive_integer(text)
    if value > _LARGEST:
        raise argparse.ArgumentTypeError(f"must be at most {_LARGEST}, got {text!r}")
    return value


def depth(text: str) -> int | str:
    """Read a number of layers, or "auto".

    :raises ArgumentTypeError: If it is neither.
    """
    try:
        return "auto" if text == "auto" else size(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or auto") from None


def seed(text: str) -> int:
    """Read a seed.

    :raises ArgumentTypeError: If it is not an integer from 0 to 2**32 - 1.
    """
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(f"must be an integer from 0 to 2**32 - 1, got {text!r}")
    return value


def fraction(text: str) -> float:
    """Read a number between 0 and 1.

    :raises ArgumentTypeError: If it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, got {text!r}")
    return value


_MOST_DIGITS = 6


def numbers(text: str) -> tuple[int, ...]:
    """Read ranges of integers, such as ``0-2,5``.

    :raises ArgumentTypeError: If there is anything else.
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not dash)):
            raise argparse.ArgumentTypeError(f"must be like 3, 0-4 or 0-2,5, got {text!r}")
        if dash and int(last) < int(first):
            raise argparse.ArgumentTypeError(f"{part!r} runs backwards")
        if len(last or first) > _MOST_DIGITS:
            raise argparse.ArgumentTypeError(f"{part!r} has a number of too many digits")
        found.extend(range(int(first), int(last or first) + 1))
    return tuple(found)


def assignment(text: str) -> tuple[str, object]:
    """Read a name and a value, such as ``jitter=1e-8``.

    :raises ArgumentTypeError: If there is no name or no equals sign.
    """
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise argparse.ArgumentTypeError(f"must be like jitter=1e-8, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
