"""Checks of arguments: what is an integer, and what the message says."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp import validation
from gpflow_dwp.validation import (
    as_real_array,
    check_flags,
    check_instance,
    check_integers,
    check_memory,
    check_not_negative,
    check_path,
    check_positive,
)

# Of each check, what passes, what does not, and what is said then.
CHECKS: dict[Callable[..., None], tuple[list[Any], list[Any], str]] = {
    check_integers: (
        [1, 7, 10**30, np.int32(3), np.uint8(1), np.int64(2**40)],
        [0, -1, np.int64(0), 1.0, np.float64(2.0), True, np.True_, "3", None, [1], np.ones(1)],
        "x must be a positive integer, got {!r}.",
    ),
    check_not_negative: ([0, 0.0, np.float32(1e-6), np.inf], ["1", None], "a number, got {!r}."),
    check_positive: (
        [1, np.float32(1e-6), np.array(2.0), np.int64(3)],
        [0, -1.0, np.nan, np.inf, "1", True, None, np.ones(1), 1j],
        "x must be a positive number, got {!r}.",
    ),
    check_flags: (
        [True, np.False_],
        ["no", "", 0, 1, 1.0, None, [True], np.array([True])],
        "x must be True or False, got {!r}.",
    ),
    check_path: (
        ["a", "", Path("a"), Path("a") / "b"],
        [None, 3, b"a", ["a"], True],
        "x must be a path, got {!r}.",
    ),
}


@pytest.mark.parametrize("check", CHECKS)
def test_what_cannot_be_used_is_named_with_its_value(check: Callable[..., None]) -> None:
    passing, refused, message = CHECKS[check]
    for value in passing:
        check(x=value)
    for value in refused:
        with pytest.raises(ValueError, match=r"^x must ") as caught:
            check(w=passing[0], x=value, y=value)  # of several, the first is named
        assert message.format(value) in str(caught.value)


def test_the_smallest_integer_is_a_choice() -> None:
    for smallest in (-3, 0, 2):
        check_integers(at_least=smallest, width=smallest)
        wanted = f"^width must be an integer of at least {smallest}, got {smallest - 1}\\.$"
        with pytest.raises(ValueError, match=wanted):
            check_integers(at_least=smallest, width=smallest - 1)
    for value in (-1e-9, np.nan):
        with pytest.raises(ValueError, match=f"jitter must not be negative, got {value}"):
            check_not_negative(jitter=value)


def test_an_instance_of_another_class_is_named_with_both_classes() -> None:
    check_instance(int, depth=True, width=3)
    with pytest.raises(ValueError, match=r"^model must be an instance of str, got NoneType\.$"):
        check_instance(str, name="a", model=None)


NUMBERS: dict[str, Any] = {
    "lists": [[1, 2.5], [True, 4]],
    "floats": np.array([[0.5, 1.5]], np.float16),
    "booleans": np.array([[True], [False]]),
    "objects": np.array([[1, 2.5, True, np.int8(3), Fraction(1, 2), 10**30]], object),
    "a tensor": tf.constant([[1, 2]]),
    "nothing masked": np.ma.masked_array([[1.0, 2.0]]),
}


@pytest.mark.parametrize("values", NUMBERS.values(), ids=NUMBERS)
def test_real_numbers_are_converted(values: Any) -> None:
    array = as_real_array("X", values)

    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, np.array(values, object).astype(float))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((2, 1)) + 1j, "X must hold real numbers, got an array of complex128"),
        (np.array([["2020-01-01"]], "M8[D]"), r"got an array of datetime64\[D\]"),
        (np.zeros(3, [("a", float)]), "got an array of "),
        ([["1.5", "2"]], "got an array of <U3"),
        ([[None, 1.0]], "X must hold numbers, got None"),
        (np.array([[1.0, "7"]], object), "X must hold numbers, got '7'"),
        ([[datetime.date(2020, 1, 1)]], r"X must hold numbers, got datetime.date\(2020, 1, 1\)"),
        ([[1.0], [1.0, 2.0]], "X must hold numbers: .* inhomogeneous"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "X must .*, got a masked array"),
        (tf.constant([["1"]]), "X must hold numbers, got b'1'"),
        (np.array([2**53 + 1]), "numbers that stay apart in float64, got 9007199254740993"),
    ],
)
def test_what_float64_would_change_in_meaning_is_refused(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_real_array("X", values)


def test_sizes_that_do_not_fit_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2**28 < validation._memory() < 2**50
    monkeypatch.setattr(validation, "_memory", lambda: 2.0**30)

    check_memory(2**13, 2**13, width=2**13)
    message = (
        r"^width must be smaller, got 8193: two arrays of shape \[8192, 8193\] take 1 GiB, and "
        r"this machine has 1\.$"
    )
    with pytest.raises(ValueError, match=message):
        check_memory(2**13, 2**13 + 1, num_samples=2, width=2**13 + 1)
    with pytest.raises(ValueError, match="num_samples must be smaller, got 1000000000000000000"):
        check_memory(10**18, 10**18, num_samples=np.int64(10**18))
