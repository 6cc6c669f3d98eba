"""What the options of commands are made of: types that read text, and options of several commands.

Nothing heavy is imported here or where commands are declared, so that help is quick.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from cyclopts import Group, Parameter, Token

__all__ = [
    "LIST",
    "Config",
    "Decimal",
    "Depth",
    "Encoding",
    "FileOptions",
    "Fraction",
    "Json",
    "Missing",
    "Names",
    "NumSamples",
    "PositiveInteger",
    "Quiet",
    "Run",
    "Seed",
    "Separator",
    "Size",
]

_T = TypeVar("_T")
_LARGEST = 1_000_000

LIST = Parameter(consume_multiple=1, allow_repeating=False)
"""Of an option that takes one value or several, all at once: of two such lists none is dropped."""


def _reader(
    name: str, number: Callable[[str], _T], is_right: Callable[[_T], bool], expected: str
) -> Parameter:
    """The parameter of a type that reads a number that is right."""

    def read(_: Any, tokens: Sequence[Token]) -> _T:
        text = tokens[0].value
        with contextlib.suppress(ValueError):
            value = number(text)
            if is_right(value):
                return value
        raise ValueError(f"must be {expected}, got {text!r}")

    read.__name__ = name
    return Parameter(converter=read)


def _as_size(text: str) -> int:
    value = int(text)
    return value if value <= _LARGEST else -1


_SIZE = f"a positive integer up to {_LARGEST}"

PositiveInteger = Annotated[
    int, _reader("positive_integer", int, lambda value: value > 0, "a positive integer")
]
Size = Annotated[int, _reader("size", _as_size, lambda value: value > 0, _SIZE)]
"""A number of draws, layers or columns: what arrays of this size are made for."""
Depth = Annotated[
    int | str,
    _reader(
        "depth",
        lambda text: "auto" if text == "auto" else _as_size(text),
        lambda value: value == "auto" or int(value) > 0,
        f"{_SIZE}, or auto",
    ),
]
Fraction = Annotated[
    float, _reader("fraction", float, lambda value: 0.0 < value < 1.0, "between 0 and 1")
]
Seed = Annotated[
    int,
    _reader("seed", int, lambda value: 0 <= value < 2**32, "an integer from 0 to 2**32 - 1"),
]
Names = Annotated[tuple[str, ...], LIST]

Run = Annotated[Path, Parameter(help="A directory that fit wrote.")]
NumSamples = Annotated[
    int,
    _reader("size", _as_size, lambda value: value > 0, _SIZE),
    Parameter(help="Draws that make up the predictive mixture."),
]
Json = Annotated[bool, Parameter(help="Print the result as one line of JSON, for programs.")]
Quiet = Annotated[bool, Parameter(help="Show no progress.")]
Config = Annotated[
    Path | None,
    Parameter(
        help="YAML or JSON file of options by name, such as the config.yaml that every run writes; "
        "options of the command line go before it."
    ),
]

_FILE = Parameter(group=Group.create_ordered("Table's file"))
Separator = Annotated[
    str | None, _FILE, Parameter(help="Between columns of a CSV file (default: found out).")
]
Decimal = Annotated[
    Literal[".", ","] | None, _FILE, Parameter(help="Before decimals (default: found out).")
]
Encoding = Annotated[
    str | None, _FILE, Parameter(help="Of the text, such as latin-1 (default: found out).")
]
Missing = Annotated[
    Names,
    _FILE,
    Parameter(
        help="Marks of missing values, besides empty cells, NA, n/a, nan, none, null, #N/A and ?."
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How a table's file is written."""

    separator: Separator = None
    decimal: Decimal = None
    encoding: Encoding = None
    missing: Missing = ()
