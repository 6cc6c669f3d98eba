"""Checks of arguments that several parts of the package make.

Arguments come by the names that the caller gave them. A :class:`ValueError` names the first one
that cannot be used, with its value.
"""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = [
    "as_real_array",
    "check_all_positive",
    "check_choice",
    "check_flags",
    "check_instance",
    "check_integers",
    "check_memory",
    "check_not_negative",
    "check_path",
    "check_positive",
]

# What limits a container, in the two versions of control groups.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def check_integers(*, at_least: int = 1, **arguments: object) -> None:
    """Refuse what is not an integer of at least ``at_least``."""
    wanted = "a positive integer" if at_least == 1 else f"an integer of at least {at_least}"
    for name, value in arguments.items():
        is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not is_integer or value < at_least:  # type: ignore[operator]
            raise ValueError(f"{name} must be {wanted}, got {value!r}.")


def check_not_negative(**arguments: object) -> None:
    """Refuse what is not a number of at least 0."""
    for name, value in arguments.items():
        if not isinstance(value, numbers.Real):
            raise ValueError(f"{name} must be a number, got {value!r}.")
        if not float(value) >= 0.0:
            raise ValueError(f"{name} must not be negative, got {value}.")


def check_positive(**arguments: object) -> None:
    """Refuse what is not a finite number above 0; arrays without axes are numbers, too."""
    for name, value in arguments.items():
        number = np.asarray(value)
        is_number = number.ndim == 0 and number.dtype.kind in "iuf"
        if not (is_number and 0.0 < number < np.inf):
            raise ValueError(f"{name} must be a positive number, got {value!r}.")


def check_all_positive(size: int, **arguments: object) -> None:
    """Refuse what is not ``size`` finite numbers above 0, on one axis."""
    for name, value in arguments.items():
        try:
            array = np.asarray(value)
        except ValueError:  # Lists of different lengths.
            array = np.asarray(None)
        are_numbers = array.shape == (size,) and array.dtype.kind in "iuf"
        if not (are_numbers and ((array > 0.0) & (array < np.inf)).all()):
            raise ValueError(f"{name} must be {size} positive numbers, got {value!r}.")


def check_flags(**arguments: object) -> None:
    """Refuse what is neither True nor False: the word "no" counts as true in Python."""
    for name, value in arguments.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {value!r}.")


def check_choice(choices: Iterable[str], **arguments: object) -> None:
    """Refuse what is none of the choices; the message lists them."""
    names = tuple(choices)
    for name, value in arguments.items():
        if value not in names:
            raise ValueError(f"{name} must be one of {', '.join(names)}, got {value!r}.")


def check_instance(kind: type, **arguments: object) -> None:
    """Refuse what is no instance of a class; the message names both classes."""
    for name, value in arguments.items():
        if not isinstance(value, kind):
            raise ValueError(
                f"{name} must be an instance of {kind.__name__}, got {type(value).__name__}."
            )


def check_memory(*shape: int, **sizes: int) -> None:
    """Refuse sizes with which an array would not fit into the machine's memory.

    An array that is trained or differentiated is there at least twice: with its starting value, or
    with its gradient. Numbers have eight bytes: in single precision, too, most are computed so.

    :param shape: Of the largest array that follows from the sizes, of which the largest is named.
    """
    needed = 2 * 8 * math.prod(map(int, shape))
    memory = _memory()
    if needed > memory:
        name = max(sizes, key=lambda name: sizes[name])
        raise ValueError(
            f"{name} must be smaller, got {sizes[name]}: two arrays of shape "
            f"{list(map(int, shape))} take {needed / 2**30:,.0f} GiB, and this machine has "
            f"{memory / 2**30:,.0f}."
        )


@functools.cache
def _memory() -> float:
    """Bytes that this process may have; infinite where the system does not say."""
    known = [math.inf]
    with contextlib.suppress(AttributeError, OSError, ValueError):
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit in _LIMITS:
        with contextlib.suppress(OSError, ValueError):
            known.append(int(Path(limit).read_text(encoding="ascii")))
    return min(known)


def as_real_array(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Convert numbers to float64, and refuse what would change its meaning on the way.

    Text is refused even where it looks like numbers: "007" is most likely a label, and Python
    reads "1_0" and "infinity" as numbers. Whoever means a number converts it. Integers beyond 2**53
    that no float64 is equal to are refused, too: identifiers, and times in nanoseconds.

    :param values: Real numbers, also as Python objects; of any shape. Complex numbers, dates,
        records, text, what is masked and anything else that is no real number are refused; the
        message names the first, or the kind.
    """
    if isinstance(values, np.ma.MaskedArray) and np.any(values.mask):
        raise ValueError(f"{name} must hold numbers, got a masked array: fill what is masked")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error
    if array.dtype.kind == "O":
        for value in array.flat:
            if not isinstance(value, numbers.Real | np.bool_):
                raise ValueError(f"{name} must hold numbers, got {value!r}")
    elif array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got an array of {array.dtype}")
    converted = np.asarray(array, np.float64)
    if array.dtype.kind in "iu" and array.dtype.itemsize > 4:
        for value in array[np.abs(converted) >= 2**53].flat:
            if int(value) != int(float(value)):
                raise ValueError(
                    f"{name} must hold numbers that stay apart in float64, got {value}: whole "
                    "numbers beyond 2**53 do not; subtract the least first"
                )
    return converted


def check_path(**arguments: object) -> None:
    """Refuse what is neither text nor a path."""
    for name, value in arguments.items():
        if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
            raise ValueError(f"{name} must be a path, got {value!r}.")
