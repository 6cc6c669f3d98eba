"""What the options of commands are made of: types that read text, and options of several commands.

Nothing heavy is imported here or where commands are declared, so that help is quick.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from cyclopts import Parameter, Token

__all__ = [
    "LIST",
    "Config",
    "Depth",
    "Dtype",
    "Fraction",
    "Json",
    "Names",
    "NumSamples",
    "PositiveInteger",
    "PositiveIntegers",
    "PositiveNumber",
    "Quiet",
    "Run",
    "Seed",
    "Settings",
    "Size",
    "Sizes",
    "Splits",
    "UciFolder",
    "assignments",
]

_T = TypeVar("_T")
_LARGEST = 1_000_000
_MOST_DIGITS = 6

LIST = Parameter(consume_multiple=1, allow_repeating=False)
"""Of an option that takes one value or several, all at once: of two such lists none is dropped."""


def _reader(
    name: str, number: Callable[[str], _T], is_right: Callable[[_T], bool], expected: str
) -> Callable[[str], _T]:
    """What reads a number that is right."""

    def read(text: str) -> _T:
        with contextlib.suppress(ValueError):
            value = number(text)
            if is_right(value):
                return value
        raise ValueError(f"must be {expected}, got {text!r}")

    read.__name__ = name
    return read


_positive_integer = _reader("positive_integer", int, lambda value: value > 0, "a positive integer")
_seed = _reader("seed", int, lambda value: 0 <= value < 2**32, "an integer from 0 to 2**32 - 1")
_positive_number = _reader(
    "positive_number", float, lambda value: 0.0 < value < math.inf, "a positive number"
)
_fraction = _reader("fraction", float, lambda value: 0.0 < value < 1.0, "between 0 and 1")


def _size(text: str) -> int:
    """A number of draws, layers or columns: what arrays of this size are made for."""
    value = _positive_integer(text)
    if value > _LARGEST:
        raise ValueError(f"must be at most {_LARGEST}, got {text!r}")
    return value


def _depth(text: str) -> int | str:
    try:
        return "auto" if text == "auto" else _size(text)
    except ValueError as error:
        raise ValueError(f"{error}, or auto") from None


def _splits(*texts: str) -> tuple[int, ...]:
    """Ranges of integers, such as ``0-2,5``; each number is there once, the least first."""
    found: set[int] = set()
    for part in ",".join(texts).split(","):
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not dash)):
            raise ValueError(f"must be like 3, 0-4 or 0-2,5, got {part!r}")
        if dash and int(last) < int(first):
            raise ValueError(f"{part!r} runs backwards")
        if len(last or first) > _MOST_DIGITS:
            raise ValueError(f"{part!r} has a number of too many digits")
        found.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(found))


def _settings(*texts: str) -> tuple[str, ...]:
    """Assignments, such as ``jitter=1e-8``, which stay text."""
    names = [text.partition("=")[0] for text in texts]
    for name, text in zip(names, texts, strict=True):
        if "=" not in text or not name.isidentifier():
            raise ValueError(f"must be like jitter=1e-8, got {text!r}")
        if names.count(name) > 1:
            raise ValueError(f"must give each name once, got {name} twice")
    return texts


def assignments(texts: Sequence[str]) -> dict[str, object]:
    """Return the values of ``--set`` by their names.

    :param texts: Such as ``jitter=1e-8``; what is no JSON is a text.
    """
    found: dict[str, object] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _reads(read: Callable[..., Any], *, each: bool = False) -> Parameter:
    """The parameter of a type that reads its texts at once, or each of them by itself."""

    def convert(_: Any, tokens: Sequence[Token]) -> Any:
        texts = [token.value for token in tokens]
        return tuple(map(read, texts)) if each else read(*texts)

    convert.__name__ = read.__name__
    return Parameter(converter=convert)


PositiveInteger = Annotated[int, _reads(_positive_integer)]
PositiveNumber = Annotated[float, _reads(_positive_number)]
PositiveIntegers = Annotated[tuple[int, ...], LIST, _reads(_positive_integer, each=True)]
Size = Annotated[int, _reads(_size)]
Sizes = Annotated[tuple[int, ...], LIST, _reads(_size, each=True)]
Depth = Annotated[int | str, _reads(_depth)]
Fraction = Annotated[float, _reads(_fraction)]
Names = Annotated[tuple[str, ...], LIST]
Splits = Annotated[tuple[int, ...], LIST, _reads(_splits)]
Settings = Annotated[tuple[str, ...], LIST, _reads(_settings), Parameter(name="--set")]
Dtype = Annotated[Literal["float64", "float32"], Parameter(help="Precision.")]
Seed = Annotated[int, _reads(_seed)]

Run = Annotated[Path, Parameter(help="A directory that fit wrote.")]
NumSamples = Annotated[
    int, _reads(_size), Parameter(help="Draws that make up the predictive mixture.")
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
UciFolder = Annotated[
    Path | None,
    Parameter(
        help="Folder of the data sets (default: that of GPFLOW_DWP_UCI, else they are downloaded)."
    ),
]
