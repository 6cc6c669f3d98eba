"""Tables hold what can be used, and nothing else."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpflow_dwp.data import Table
from gpflow_dwp.data.table import check_arrays, split_table
from gpflow_dwp.exceptions import TableError

X = np.arange(40.0).reshape(20, 2)
Y = np.linspace(-1.0, 1.0, 20)[:, None]
LABELS = np.repeat([0.0, 1.0], [14, 6])[:, None]


def regression() -> Table:
    return Table(X, Y, ("a", "b"), "y")


def classification() -> Table:
    return Table(X, LABELS, ("a", "b"), "y", "classification", ("no", "yes"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": X[:5]}, "X and Y must have the same rows, got 5 and 20"),
        ({"Y": np.hstack([Y, Y])}, r"Y must have one column, got shape \[20, 2\]"),
        ({"feature_names": ("a",)}, "1 feature names for 2 columns"),
        ({"classes": ("no", "yes")}, "classes are for classification"),
        ({"task": "classification"}, "classification needs them"),
        ({"task": "ranking"}, "task must be 'regression' or 'classification', got 'ranking'"),
        (
            {"Y": Y, "task": "classification", "classes": ("no", "yes")},
            "Y must hold class indices 0 to 1",
        ),
    ],
)
def test_table_refuses_parts_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=message):
        replace(regression(), **changes)


def test_check_arrays_gives_the_shapes_of_models() -> None:
    inputs, targets = check_arrays(X.astype(int).tolist(), Y[:, 0].tolist())
    assert inputs.dtype == targets.dtype == np.float64
    np.testing.assert_array_equal(inputs, X)
    np.testing.assert_array_equal(targets, Y)
    _, two = check_arrays(X, np.hstack([Y, -Y]))
    assert two.shape == (20, 2)


def test_check_arrays_accepts_labels() -> None:
    _, targets = check_arrays(X, LABELS[:, 0].astype(int), task="classification")
    np.testing.assert_array_equal(targets, LABELS)


HOLE = np.where(np.arange(20)[:, None] == 3, np.nan, X)


@pytest.mark.parametrize(
    ("inputs", "targets", "task", "message"),
    [
        (X[:, 0], Y, "regression", r"X must have two axes.* shape \[20\]; .* use X\[:, None\]"),
        (X, Y[None], "regression", r"Y must have two axes.* got shape \[1, 20, 1\]"),
        (X[:5], Y, "regression", "same rows, got 5 and 20"),
        (X[:0], Y[:0], "regression", r"X is empty: it has shape \[0, 2\]"),
        (HOLE, Y, "regression", "X holds nan in row 4, column 1"),
        (X, np.where(Y > 0.9, np.inf, Y), "regression", "Y holds inf in row 20, column 1"),
        ([["a"], ["b"]], [0.0, 1.0], "regression", "X must hold real numbers, got an array of <U1"),
        (X, np.ma.masked_array(Y, Y > 0.5), "regression", "Y must .*, got a masked array"),
        (X, np.ones(20), "regression", r"Y is constant \(column 1\): there is nothing"),
        (X, Y, "classification", r"Y must hold class indices 0 to C - 1, got -1, "),
        (X, LABELS + 1.0, "classification", "class indices 0 to C - 1, got 1, 2"),
        (X, np.zeros(20), "classification", "Y has a single class, '0'"),
        (X, np.arange(20), "classification", r"Y has as many classes as rows \(20\)"),
        (X, np.arange(20) == 7, "classification", "Y has one row only of class '1'"),
        (X, Y, "ranking", "task must be"),
    ],
)
def test_check_arrays_refuses(inputs: Any, targets: Any, task: Any, message: str) -> None:
    with pytest.raises(TableError, match=message) as caught:
        check_arrays(inputs, targets, task=task)
    assert "\n" not in str(caught.value)


def test_split_is_a_partition() -> None:
    train, test = split_table(regression(), 0.25, seed=3)
    assert (len(train.X), len(test.X)) == (15, 5)
    rows = np.vstack([train.X, test.X])
    np.testing.assert_array_equal(rows[np.argsort(rows[:, 0])], X)
    np.testing.assert_allclose(train.Y[:, 0], train.X[:, 0] / 19.0 - 1.0)
    assert test.feature_names == ("a", "b")


def test_split_follows_its_seed() -> None:
    first, again, other = (split_table(regression(), 0.25, seed=s)[1].X for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_split_keeps_the_share_of_each_class() -> None:
    train, test = split_table(classification(), 0.5, seed=0)
    assert train.Y.sum() == test.Y.sum() == 3.0
    assert train.classes == ("no", "yes")


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 1.5, 0.99, 0.01])
def test_split_refuses(fraction: float) -> None:
    with pytest.raises(TableError, match="test_fraction"):
        split_table(classification(), fraction, seed=0)


def test_split_names_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.model_selection", None)
    with pytest.raises(ImportError, match=r"gpflow-dwp\[cli\]"):
        split_table(regression(), 0.5, seed=0)
