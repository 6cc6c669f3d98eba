"""Checks of arguments: what is an integer, and what the message says."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp import validation as checks

X = np.arange(40.0).reshape(20, 2)
Y = np.linspace(-1.0, 1.0, 20)[:, None]
HOLE = np.where(np.arange(20)[:, None] == 3, np.nan, X)

# Of each check, what passes, what does not, and what is said then.
CHECKS: dict[Callable[..., None], tuple[list[Any], list[Any], str]] = {
    checks.check_integers: (
        [1, 7, 10**30, np.int32(3), np.uint8(1), np.int64(2**40)],
        [0, -1, np.int64(0), 1.0, np.float64(2.0), True, np.True_, "3", None, [1], np.ones(1)],
        "x must be a positive integer, got {!r}.",
    ),
    checks.check_not_negative: (
        [0, 0.0, np.float32(1e-6), np.inf],
        ["1", None, -1e-9, np.nan],
        "x must be a number of at least 0, got {!r}.",
    ),
    checks.check_positive: (
        [1, np.float32(1e-6), np.array(2.0), np.int64(3)],
        [0, -1.0, np.nan, np.inf, "1", True, None, np.ones(1), 1j],
        "x must be a positive number, got {!r}.",
    ),
    checks.check_flags: (
        [True, np.False_],
        ["no", "", 0, 1, 1.0, None, [True], np.array([True])],
        "x must be True or False, got {!r}.",
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


def test_the_smallest_integer_and_the_class_are_choices() -> None:
    for smallest in (-3, 0, 2):
        checks.check_integers(at_least=smallest, width=smallest)
        wanted = f"^width must be an integer of at least {smallest}, got {smallest - 1}\\.$"
        with pytest.raises(ValueError, match=wanted):
            checks.check_integers(at_least=smallest, width=smallest - 1)
    checks.check_instance(int, depth=True, width=3)
    with pytest.raises(ValueError, match=r"^model must be an instance of str, got NoneType\.$"):
        checks.check_instance(str, name="a", model=None)


def test_real_numbers_are_converted() -> None:
    for values in (
        [[1, 2.5], [True, 4]],
        np.array([[0.5, 1.5]], np.float16),
        np.array([[True], [False]]),
        np.array([[1, 2.5, True, np.int8(3), Fraction(1, 2), 10**30]], object),
        tf.constant([[1, 2]]),
        np.ma.masked_array([[1.0, 2.0]]),
    ):
        array = checks.as_real_array("X", values)
        assert array.dtype == np.float64
        np.testing.assert_array_equal(array, np.array(values, object).astype(float))


def test_what_float64_would_change_in_meaning_is_refused() -> None:
    for values, message in (
        (np.ones((2, 1)) + 1j, "X must hold real numbers, got an array of complex128"),
        (np.array([["2020-01-01"]], "M8[D]"), r"got an array of datetime64\[D\]"),
        (np.zeros(3, [("a", float)]), "got an array of "),
        ([["1.5", "2"]], "got an array of text, such as .'1.5'"),
        ([[None, 1.0]], "X must hold numbers, got None"),
        (np.array([[1.0, "7"]], object), "X must hold numbers, got '7'"),
        ([[datetime.date(2020, 1, 1)]], r"X must hold numbers, got datetime.date\(2020, 1, 1\)"),
        ([[1.0], [1.0, 2.0]], "X must hold numbers: .* inhomogeneous"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "X must .*, got a masked array"),
        (tf.constant([["1"]]), "X must hold numbers, got b'1'"),
        (np.array([2**53 + 1]), "numbers that stay apart in float64, got 9007199254740993"),
    ):
        with pytest.raises(ValueError, match=message):
            checks.as_real_array("X", values)


def test_sizes_that_do_not_fit_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2**28 < checks._memory() < 2**50
    monkeypatch.setattr(checks, "_memory", lambda: 2.0**30)
    checks.check_memory(2**13, 2**13, width=2**13)
    message = (
        r"^width must be smaller, got 8193: two arrays of shape \[8192, 8193\] take 1 GiB, and "
        r"this machine has 1\.$"
    )
    with pytest.raises(ValueError, match=message):
        checks.check_memory(2**13, 2**13 + 1, num_samples=2, width=2**13 + 1)
    with pytest.raises(ValueError, match="num_samples must be smaller, got 1000000000000000000"):
        checks.check_memory(10**18, 10**18, num_samples=np.int64(10**18))


def test_check_arrays_refuses() -> None:
    """Would catch arrays that a model fails on without a name."""
    for inputs, targets, message in (
        (X[:, 0], Y, r"X must have two axes.* shape \[20\]; .* use X\[:, None\]"),
        (X, Y[None], r"Y must have two axes.* got shape \[1, 20, 1\]"),
        (X[:5], Y, "same rows, got 5 and 20"),
        (X[:0], Y[:0], r"X is empty: it has shape \[0, 2\]"),
        (HOLE, Y, "X holds nan in row 4, column 1"),
        (X, np.where(Y > 0.9, np.inf, Y), "Y holds inf in row 20, column 1"),
        (X, np.ma.masked_array(Y, Y > 0.5), "Y must .*, got a masked array"),
        (X, np.ones(20), r"Y is constant \(column 1\): there is nothing"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            checks.check_arrays(inputs, targets)
        assert "\n" not in str(caught.value)


def test_what_check_arrays_returns_and_weights() -> None:
    """Would catch integers or a flat target that reach a model, a mask that is lost, a column
    without targets, weights that cannot count rows."""
    hidden = np.ma.masked_array((100.0 * Y).astype(int), Y > 0.5)
    _, targets = checks.check_arrays(X, hidden, may_miss=True)
    np.testing.assert_array_equal(targets, np.where(Y > 0.5, np.nan, hidden.data))
    inputs, targets = checks.check_arrays(X.astype(int).tolist(), Y[:, 0].tolist())
    assert inputs.dtype == targets.dtype == np.float64
    np.testing.assert_array_equal(inputs, X)
    np.testing.assert_array_equal(targets, Y)
    with pytest.raises(ValueError, match="Y is missing in all rows"):
        checks.check_arrays(X, np.full(20, np.nan), may_miss=True)
    for weights, message in (
        ([1.0], r"must have shape \[2\], got \[1\]"),
        ([1.0, -1.0], "not negative, got -1 in row 2"),
        ([0.0, 0.0], "must not all be zero"),
    ):
        with pytest.raises(ValueError, match=message):
            checks.check_weights(weights, 2)
