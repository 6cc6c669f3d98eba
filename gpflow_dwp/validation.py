"""What arguments, and data that come as arrays, must be: each kind once.

Arguments come by the names that the caller gave them. A :class:`ValueError` names the first one
that cannot be used, what was expected, and what came.
"""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "are_constant",
    "as_real_array",
    "as_weighted",
    "check_arrays",
    "check_choice",
    "check_flags",
    "check_instance",
    "check_integers",
    "check_matrix",
    "check_memory",
    "check_not_negative",
    "check_positive",
    "check_process",
    "check_shares",
    "check_unmasked",
    "check_weights",
    "is_known",
    "with_weights",
]

Array = npt.NDArray[np.float64]

_ROUNDING = 4 * np.finfo(float).eps
_LIMIT_OF_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def check_integers(*, at_least: int = 1, **arguments: object) -> None:
    """Refuse what is not an integer of at least ``at_least``."""
    wanted = "a positive integer" if at_least == 1 else f"an integer of at least {at_least}"
    _check(wanted, lambda value: _is(numbers.Integral, value) and value >= at_least, arguments)


def check_not_negative(**arguments: object) -> None:
    """Refuse what is not a number of at least 0."""
    _check("a number of at least 0", lambda x: _is(numbers.Real, x) and float(x) >= 0, arguments)


def check_positive(*, size: int | None = None, **arguments: object) -> None:
    """Refuse what is not a finite number above 0, also without axes; or ``size`` on one axis."""
    wanted = "a positive number" if size is None else f"{size} positive numbers"
    shape = () if size is None else (size,)
    _check(wanted, lambda values: _are_positive(values, shape), arguments)


def check_shares(**arguments: object) -> None:
    """Refuse what is not a number strictly between 0 and 1."""
    wanted = "a number strictly between 0 and 1"
    _check(wanted, lambda value: _is(numbers.Real, value) and 0 < value < 1, arguments)


def check_flags(**arguments: object) -> None:
    """Refuse what is neither True nor False: the word "no" counts as true in Python."""
    _check("True or False", lambda value: isinstance(value, bool | np.bool_), arguments)


def check_choice(choices: Iterable[str], **arguments: object) -> None:
    """Refuse what is none of the choices; the message lists them."""
    names = tuple(choices)
    _check(f"one of {', '.join(names)}", lambda value: value in names, arguments)


def check_instance(kind: type, **arguments: object) -> None:
    """Refuse what is no instance of a class; the message names both classes."""
    for name, value in arguments.items():
        if not isinstance(value, kind):
            raise ValueError(
                f"{name} must be an instance of {kind.__name__}, got {type(value).__name__}."
            )


def _check(expected: str, is_right: Callable[[Any], bool], arguments: Mapping[str, object]) -> None:
    for name, value in arguments.items():
        if not is_right(value):
            raise ValueError(f"{name} must be {expected}, got {value!r}.")


def _is(kind: type, value: object) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _are_positive(values: Any, shape: tuple[int, ...]) -> bool:
    try:
        array = np.asarray(values)
    except ValueError:  # Lists of different lengths.
        return False
    are_numbers = array.shape == shape and array.dtype.kind in "iuf"
    return are_numbers and bool(((array > 0.0) & (array < np.inf)).all())


def check_memory(*shape: int, **sizes: int) -> None:
    """Refuse sizes with which an array would not fit into the machine's memory.

    An array that is trained or differentiated is there at least twice: with its starting value, or
    with its gradient. Numbers have eight bytes: in single precision, too, most are computed so.

    :param shape: Of the largest array that follows from the sizes, of which the largest is named.
    """
    needed, memory = 2 * 8 * math.prod(map(int, shape)), _memory()
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
    with contextlib.suppress(OSError, ValueError):
        known.append(int(_LIMIT_OF_CONTAINER.read_text(encoding="ascii")))
    return min(known)


def check_unmasked(**arguments: object) -> None:
    """Refuse masked arrays, whose mask would be lost, if anything is masked."""
    for name, values in arguments.items():
        if isinstance(values, np.ma.MaskedArray) and np.any(values.mask):
            raise ValueError(f"{name} must hold numbers, got a masked array: fill what is masked")


_processes: dict[str, int] = {}


def check_process() -> None:
    """Refuse, by a :class:`RuntimeError`, to compute where TensorFlow would wait for ever.

    Its threads are not in a process that was forked after it had computed.
    """
    if _processes.setdefault("first", os.getpid()) != os.getpid():
        raise RuntimeError(
            "This process was forked from one in which TensorFlow had computed, whose threads it "
            "lacks: it would wait for ever. Start processes by spawn, "
            'multiprocessing.get_context("spawn"), or joblib\'s backend "loky".'
        )


def as_real_array(name: str, values: npt.ArrayLike, *, may_miss: bool = False) -> Array:
    """Convert numbers to float64, and refuse what would change its meaning on the way.

    Text is refused even where it looks like numbers: "007" is most likely a label, and Python
    reads "1_0" and "infinity" as numbers. Whoever means a number converts it. Integers beyond 2**53
    that no float64 is equal to are refused, too: identifiers, and times in nanoseconds.

    :param values: Real numbers, also as Python objects; of any shape. Complex numbers, dates,
        records, text, what is masked and anything else that is no real number are refused; the
        message names the first, or the kind.
    :param may_miss: Whether numbers may be masked, which are NaN then.
    """
    if may_miss and isinstance(values, np.ma.MaskedArray):
        seen = np.array(values.data)
        seen[values.mask] = 0
        return np.where(values.mask, np.nan, as_real_array(name, seen))
    check_unmasked(**{name: values})
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error
    if array.dtype.kind == "O":
        for value in array.flat:
            if not isinstance(value, numbers.Real | np.bool_):
                raise ValueError(f"{name} must hold numbers, got {value!r}")
    elif array.dtype.kind not in "biuf":
        is_text = array.dtype.kind in "SU"
        what = f"text, such as {array.ravel()[:1].tolist()}" if is_text else array.dtype
        raise ValueError(f"{name} must hold real numbers, got an array of {what}")
    try:
        converted = np.asarray(array, np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error
    if array.dtype.kind in "iu" and array.dtype.itemsize > 4:
        for value in array[np.abs(converted) >= 2**53].flat:
            if int(value) != int(float(value)):
                raise ValueError(
                    f"{name} must hold numbers that stay apart in float64, got {value}: whole "
                    "numbers beyond 2**53 do not; subtract the least first"
                )
    return converted


def check_matrix(name: str, values: npt.ArrayLike, *, may_miss: bool = False) -> Array:
    """Return numbers, [rows, columns], as a matrix of float64.

    :param may_miss: Whether numbers may be missing: masked, or NaN.
    :raises ValueError: If they are not finite real numbers in two axes; it names the first row at
        fault.
    """
    array = as_real_array(name, values, may_miss=may_miss)
    if array.ndim != 2:
        hint = f"; for one column use {name}[:, None]" if array.ndim == 1 else ""
        raise ValueError(
            f"{name} must have two axes, [rows, columns], got shape {list(array.shape)}{hint}"
        )
    if 0 in array.shape:
        raise ValueError(f"{name} is empty: it has shape {list(array.shape)}")
    wrong = np.argwhere(np.isinf(array) if may_miss else ~np.isfinite(array))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(f"{name} holds {array[row, column]} in row {row + 1}, column {column + 1}")
    return array


def are_constant(columns: Array) -> npt.NDArray[np.bool_]:
    """Return which columns of a matrix are one number, but for rounding; NaN are passed over.

    As 0.1 + 0.2 and 0.3 are, of a division or another unit: in units of such a deviation all other
    numbers would be far away.
    """
    low, high = np.fmin.reduce(columns), np.fmax.reduce(columns)
    return np.asarray(high - low <= _ROUNDING * np.maximum(np.abs(low), np.abs(high)))


def check_weights(weights: npt.ArrayLike, num_rows: int) -> Array:
    """Return weights in float64, [N], that say of each of N rows how often it counts.

    :raises ValueError: If they are not N numbers from 0, or all zero.
    """
    array = as_real_array("weights", weights)
    if array.shape != (num_rows,):
        raise ValueError(f"weights must have shape [{num_rows}], got {list(array.shape)}")
    for row in np.flatnonzero(~(np.isfinite(array) & (array >= 0.0)))[:1]:
        raise ValueError(
            f"weights must be finite and not negative, got {array[row]:g} in row {row + 1}"
        )
    if not array.any():
        raise ValueError("weights must not all be zero")
    return array


def check_arrays(
    X: npt.ArrayLike, Y: npt.ArrayLike, *, may_miss: bool = False
) -> tuple[Array, Array]:
    """Check inputs and targets that come as arrays, and give them the shapes that models take.

    :param X: Inputs, [N, D].
    :param Y: Targets, [N, Q], or [N] for one column.
    :param may_miss: Whether targets may be missing: masked, or NaN.
    :return: Both as float64, [N, D] and [N, Q].
    :raises ValueError: If a value is no finite number, the shapes do not fit, or a target is
        constant or missing in all rows.
    """
    inputs, targets = check_matrix("X", X), as_real_array("Y", Y, may_miss=may_miss)
    targets = targets[:, None] if targets.ndim == 1 else targets
    targets = check_matrix("Y", targets, may_miss=may_miss)
    if len(inputs) != len(targets):
        raise ValueError(f"X and Y must have the same rows, got {len(inputs)} and {len(targets)}")
    for column in np.flatnonzero(np.isnan(targets).all(axis=0)):
        raise ValueError(f"Y is missing in all rows (column {column + 1})")
    for column in np.flatnonzero(are_constant(targets)):
        raise ValueError(f"Y is constant (column {column + 1}): there is nothing to predict")
    return inputs, targets


def as_weighted(data: Any) -> tuple[Any, Any, Any]:
    """Return data as X, Y and weights, which are None of a pair, or raise a :class:`ValueError`."""
    if not isinstance(data, tuple | list) or len(data) not in (2, 3):
        raise ValueError(
            f"data must be a pair (X, Y), or three, (X, Y, weights), got {type(data).__name__}."
        )
    return data[0], data[1], (data[2] if len(data) == 3 else None)


def with_weights(X: Any, Y: Any, weights: Any) -> Any:
    """Return data as :func:`as_weighted` takes them: a pair where weights are None, or three."""
    return (X, Y) if weights is None else (X, Y, weights)


def is_known(likelihood: object, *kinds: type) -> bool:
    """Whether a likelihood is one of GPflow's or of this package's, of some kinds.

    What is known of a class, such as a closed form, need not be true of classes of a user's that
    inherit from it: their densities may be others.

    :param likelihood: The likelihood.
    :param kinds: Classes that it is of, or inherits from.
    """
    package = type(likelihood).__module__.partition(".")[0]
    return package in ("gpflow", "gpflow_dwp") and isinstance(likelihood, kinds)
