"""Tables that are split, and those of examples."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from gpflow_dwp.data import Table, load_yacht, step_function, varying_sine
from gpflow_dwp.exceptions import TableError

X = np.arange(40.0).reshape(20, 2)
Y = np.linspace(-1.0, 1.0, 20)[:, None]


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


def test_the_yachts_have_names() -> None:
    """Would catch rows or columns that are lost on the way out of the package."""
    table = load_yacht()
    assert (table.X.shape, table.Y.shape, table.target_name) == ((308, 6), (308, 1), "resistance")
    assert table.feature_names[-1] == "froude_number" and table.task == "regression"


def test_the_functions_and_their_noise() -> None:
    """Would catch another function, noise of another size, and a seed that is not used."""
    for function, truth in (
        (step_function, lambda x: x > 0.0),
        (varying_sine, lambda x: np.sin(6.0 * np.pi * ((x + 1.0) / 2.0) ** 3)),
    ):
        X, Y = function(4000, noise=0.3, seed=2)
        assert X.shape == Y.shape == (4000, 1)
        assert -1.0 <= X.min() < X.max() <= 1.0 and (np.diff(X[:, 0]) > 0.0).all()
        # Four standard deviations.
        assert (Y - truth(X)).std() == pytest.approx(0.3, rel=4.0 / np.sqrt(8000.0))
        np.testing.assert_array_equal(function(4000, noise=0.3, seed=2)[1], Y)
        assert not np.array_equal(function(4000, noise=0.3, seed=3)[0], X)
