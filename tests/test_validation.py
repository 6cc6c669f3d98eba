"""Checks of arguments: what is an integer, and what the message says."""

from __future__ import annotations

import datetime
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


@pytest.mark.parametrize("value", [1, 7, 10**30, np.int32(3), np.uint8(1), np.int64(2**40)])
def test_positive_integers_pass(value: object) -> None:
    check_integers(depth=value)


@pytest.mark.parametrize(
    "value",
    [0, -1, np.int64(0), 1.0, np.float64(2.0), True, False, np.True_, "3", None, [1], np.ones(1)],
)
def test_everything_else_is_named(value: object) -> None:
    with pytest.raises(ValueError, match=r"^depth must be a positive integer, got ") as caught:
        check_integers(depth=value)
    assert str(caught.value) == f"depth must be a positive integer, got {value!r}."


@pytest.mark.parametrize("smallest", [-3, 0, 2])
def test_smallest_value_is_a_choice(smallest: int) -> None:
    check_integers(at_least=smallest, width=smallest)
    wanted = f"^width must be an integer of at least {smallest}, got {smallest - 1}\\.$"
    with pytest.raises(ValueError, match=wanted):
        check_integers(at_least=smallest, width=smallest - 1)


def test_the_first_bad_one_of_several_is_named() -> None:
    with pytest.raises(ValueError, match="^width "):
        check_integers(depth=2, width=0, num_samples=-1)


def test_numbers_from_zero_pass() -> None:
    check_not_negative(a=0, b=0.0, c=np.float32(1e-6), d=np.inf)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1e-9, "jitter must not be negative, got -1e-09"),
        (np.nan, "jitter must not be negative, got nan"),
        ("1", "jitter must be a number, got '1'"),
        (None, "jitter must be a number, got None"),
    ],
)
def test_numbers_below_zero_and_other_things_are_named(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_not_negative(jitter=value)


def test_an_instance_of_another_class_is_named_with_both_classes() -> None:
    check_instance(int, depth=True, width=3)
    with pytest.raises(ValueError, match=r"^model must be an instance of str, got NoneType\.$"):
        check_instance(str, name="a", model=None)


def test_numbers_above_zero_pass() -> None:
    check_positive(a=1, b=np.float32(1e-6), c=np.array(2.0), d=np.int64(3))


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "1", True, None, np.ones(1), 1j])
def test_numbers_that_are_not_above_zero_are_named(value: object) -> None:
    with pytest.raises(ValueError, match="^df must be a positive number, got "):
        check_positive(df=value)


@pytest.mark.parametrize("value", ["no", "", 0, 1, 1.0, None, [True], np.array([True])])
def test_what_is_no_boolean_is_named(value: object) -> None:
    check_flags(whiten=True, full_cov=np.False_)
    with pytest.raises(ValueError, match="^whiten must be True or False, got ") as caught:
        check_flags(full_cov=False, whiten=value)
    assert str(caught.value) == f"whiten must be True or False, got {value!r}."


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
        (np.zeros((2, 1), "m8[s]"), r"got an array of timedelta64\[s\]"),
        (np.zeros(3, [("a", float)]), "got an array of "),
        ([["1.5", "2"]], "got an array of <U3"),
        ([[b"1.5"]], r"got an array of \|S3"),
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
    monkeypatch.setattr(validation, "_memory", lambda: 2.0**30)

    check_memory(2**13, 2**13, width=2**13)
    message = (
        r"^width must be smaller, got 8193: two arrays of shape \[8192, 8193\] take 1 GiB, and "
        r"this machine has 1\.$"
    )
    with pytest.raises(ValueError, match=message):
        check_memory(2**13, 2**13 + 1, num_samples=2, width=2**13 + 1)


def test_the_memory_of_this_machine_is_known() -> None:
    assert 2**28 < validation._memory() < 2**50
    with pytest.raises(ValueError, match="num_samples must be smaller, got 1000000000000000000"):
        check_memory(10**18, 10**18, num_samples=np.int64(10**18))


@pytest.mark.parametrize("value", ["a", "", Path("a"), Path("a") / "b"])
def test_paths_pass(value: object) -> None:
    check_path(directory=value)


@pytest.mark.parametrize("value", [None, 3, b"a", ["a"], True])
def test_what_is_no_path_is_named(value: object) -> None:
    with pytest.raises(ValueError, match="directory must be a path, got"):
        check_path(directory=value)
