"""What scikit-learn would make other numbers of on the way to float64."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.validation import as_real_array


def exact_numbers(
    name: str, values: Any, *, times: Literal["refused", "taken", "told"] = "refused"
) -> Any:
    """Return values that stay apart in float64, times as seconds since 1970 (UTC), None as NaN.

    :param name: What they are called in messages.
    :param values: An array, a series, a frame of pandas or polars, or lists.
    :param times: What becomes of times: of inputs they are taken, with a warning if "told"; of
        targets, of which what is masked is NaN, they are refused.
    :raises ValueError: If they have no rows, are spans of time, records, text, masked or times that
        are not taken, or integers beyond 2**53 or times of which float64 would make equal numbers.
    """
    if isinstance(values, list | tuple):
        values = np.asarray(values)
    if getattr(values, "shape", ())[:1] == (0,):
        raise ValueError(f"{name} has no rows.")
    if isinstance(values, np.ma.MaskedArray):
        return as_real_array(name, values, may_miss=times == "refused")
    if isinstance(values, np.ndarray) and values.dtype.kind == "O":
        is_none = np.reshape([each is None for each in values.flat], values.shape)
        values = np.where(is_none, np.nan, values)
    is_frame = hasattr(values, "columns")
    columns = {each: values[each] for each in values.columns} if is_frame else {name: values}
    seconds = {}
    for each, column in columns.items():
        array = np.asarray(column)
        kind = getattr(getattr(column, "dtype", None), "kind", array.dtype.kind)
        called = f"{name}[{each!r}]" if is_frame else name
        if kind == "M" and times != "refused":
            seconds[each] = _seconds(called, column)
        elif kind in ("M", "m", "V"):
            raise ValueError(f"{called} must hold numbers, got {column.dtype}.")
        elif array.dtype.kind in "iuUS":
            as_real_array(called, column)
        elif array.dtype.kind == "O":
            as_real_array(called, [each for each in array.flat if isinstance(each, str | int)])
    if seconds and times == "told":
        warnings.warn(
            f"times are taken as seconds since 1970 (UTC): {', '.join(map(str, seconds))}.",
            UserWarning,
            stacklevel=5,
        )
    if is_frame and seconds:
        return type(values)({**columns, **seconds})
    return seconds.get(name, values)


def _seconds(name: str, times: Any) -> Array:
    array = np.asarray(times)
    if array.dtype.kind == "O":  # those of pandas that have a zone
        array = np.asarray(times.dt.tz_convert(None))
    seconds = (array - np.datetime64(0, "s")) / np.timedelta64(1, "s")
    if len(np.unique(array)) > len(np.unique(seconds)):
        raise ValueError(
            f"{name} must hold times that stay apart as seconds since 1970 in float64, got some "
            "less than a microsecond apart: give seconds from the first instead."
        )
    return np.asarray(seconds)


def standardiser_of_seen(Y: Array, weights: Array | None) -> Standardiser:
    """That of targets [N, P], of which NaN are missing."""
    columns = []
    for column, seen in zip(Y.T, ~np.isnan(Y.T), strict=True):
        if not seen.any():
            raise ValueError("y must not be missing in all rows of a column.")
        counts = None if weights is None else weights[seen]
        columns.append(Standardiser.fit(column[seen, None], weights=counts, name="y"))
    return Standardiser(
        *(np.concatenate([getattr(c, k) for c in columns]) for k in ("mean", "scale"))
    )
