"""Checks of arguments: what is an integer, and what the message says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpflow_dwp.validation import check_instance, check_integers, check_not_negative, check_path


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


def test_nothing_to_check_is_fine() -> None:
    check_integers()


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


@pytest.mark.parametrize("value", ["a", "", Path("a"), Path("a") / "b"])
def test_paths_pass(value: object) -> None:
    check_path(directory=value)


@pytest.mark.parametrize("value", [None, 3, b"a", ["a"], True])
def test_what_is_no_path_is_named(value: object) -> None:
    with pytest.raises(ValueError, match="directory must be a path, got"):
        check_path(directory=value)
