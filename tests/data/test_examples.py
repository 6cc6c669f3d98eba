"""Data that comes with scikit-learn and with the package, and toy functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpflow_dwp.data import load_diabetes, load_uci, load_yacht, step_function, varying_sine


def test_diabetes_is_in_raw_units() -> None:
    """Would catch scikit-learn's scaled columns."""
    table = load_diabetes()
    assert table.X.shape == (442, 10)
    assert table.feature_names[:4] == ("age", "sex", "bmi", "bp")
    assert (table.target_name, table.task) == ("progression", "regression")
    assert 18 < table.X[:, 0].min() < table.X[:, 0].max() < 80
    assert (table.Y.min(), table.Y.max()) == (25.0, 346.0)


def test_the_yachts_are_those_of_the_archive(uci_folder: Path) -> None:
    """Would catch rows or columns that were lost on the way into the package."""
    table = load_yacht()
    assert (table.X.shape, table.Y.shape, table.target_name) == ((308, 6), (308, 1), "resistance")
    split = load_uci("yacht", 0, folder=uci_folder)
    parts = [(split.X_train, split.Y_train), (split.X_test, split.Y_test)]
    rows = np.vstack([np.hstack(part) for part in parts])
    ours = np.hstack([table.X, table.Y])
    np.testing.assert_array_equal(ours[np.lexsort(ours.T)], rows[np.lexsort(rows.T)])


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
