"""Arrays are given the shapes of models, and split as scikit-learn does."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from gpflow_dwp.data import Table
from gpflow_dwp.data.table import check_arrays, check_weights
from gpflow_dwp.exceptions import TableError

X = np.arange(40.0).reshape(20, 2)
Y = np.linspace(-1.0, 1.0, 20)[:, None]
HOLE = np.where(np.arange(20)[:, None] == 3, np.nan, X)


def test_check_arrays_gives_the_shapes_of_models() -> None:
    """Would catch integers or a flat target that reach a model."""
    inputs, targets = check_arrays(X.astype(int).tolist(), Y[:, 0].tolist())
    assert inputs.dtype == targets.dtype == np.float64
    np.testing.assert_array_equal(inputs, X)
    np.testing.assert_array_equal(targets, Y)
    _, two = check_arrays(X, np.hstack([Y, -Y]))
    assert two.shape == (20, 2)


@pytest.mark.parametrize(
    ("inputs", "targets", "message"),
    [
        (X[:, 0], Y, r"X must have two axes.* shape \[20\]; .* use X\[:, None\]"),
        (X, Y[None], r"Y must have two axes.* got shape \[1, 20, 1\]"),
        (X[:5], Y, "same rows, got 5 and 20"),
        (X[:0], Y[:0], r"X is empty: it has shape \[0, 2\]"),
        (HOLE, Y, "X holds nan in row 4, column 1"),
        (X, np.where(Y > 0.9, np.inf, Y), "Y holds inf in row 20, column 1"),
        ([["a"], ["b"]], [0.0, 1.0], "X must hold real numbers, got an array of <U1"),
        (X, np.ma.masked_array(Y, Y > 0.5), "Y must .*, got a masked array"),
        (X, np.ones(20), r"Y is constant \(column 1\): there is nothing"),
    ],
)
def test_check_arrays_refuses(inputs: Any, targets: Any, message: str) -> None:
    """Would catch arrays that a model fails on without a name."""
    with pytest.raises(TableError, match=message) as caught:
        check_arrays(inputs, targets)
    assert "\n" not in str(caught.value)


def test_missing_targets_and_weights() -> None:
    """Would catch a column without any target, and weights that cannot count rows."""
    with pytest.raises(TableError, match="Y is missing in all rows"):
        check_arrays(X, np.full(20, np.nan), may_miss=True)
    for weights, message in (
        ([1.0], r"must have shape \[2\], got \[1\]"),
        ([1.0, -1.0], "not negative, got -1 in row 2"),
        ([0.0, 0.0], "must not all be zero"),
    ):
        with pytest.raises(TableError, match=message):
            check_weights(weights, 2)


def test_split_is_a_partition_that_follows_its_seed() -> None:
    """Would catch rows that are lost, or in both parts."""
    table = Table(X, Y, ("a", "b"), "y")
    train, test = table.split(0.25, seed=3)
    assert (len(train.X), len(test.X)) == (15, 5)
    rows = np.vstack([train.X, test.X])
    np.testing.assert_array_equal(rows[np.argsort(rows[:, 0])], X)
    np.testing.assert_allclose(train.Y[:, 0], train.X[:, 0] / 19.0 - 1.0)
    np.testing.assert_array_equal(table.split(0.25, seed=3)[1].X, test.X)
    assert not np.array_equal(table.split(0.25, seed=4)[1].X, test.X)


def test_split_keeps_the_share_of_each_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch a class that test rows do not have; without scikit-learn it says what to do."""
    table = Table(X, np.repeat([0.0, 1.0], [14, 6])[:, None], ("a", "b"), "y", ("no", "yes"))
    train, test = table.split(0.5, seed=0)
    assert train.Y.sum() == test.Y.sum() == 3.0 and train.classes == ("no", "yes")
    for fraction in (1.5, 0.99, 0.01):
        with pytest.raises(TableError, match=f"cannot hold out {fraction} of 20 rows: "):
            table.split(fraction, seed=0)
    monkeypatch.setitem(sys.modules, "sklearn.model_selection", None)
    with pytest.raises(ImportError, match=r"gpflow-dwp\[cli\]"):
        table.split(0.5, seed=0)
