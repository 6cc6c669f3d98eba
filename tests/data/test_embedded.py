"""Data that comes with scikit-learn, and with the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpflow_dwp.data import load_diabetes, load_uci, load_yacht


def test_diabetes_is_in_raw_units() -> None:
    table = load_diabetes()
    assert table.X.shape == (442, 10)
    assert table.feature_names[:4] == ("age", "sex", "bmi", "bp")
    assert (table.target_name, table.task) == ("progression", "regression")
    age = table.X[:, 0]
    assert 18 < age.min() < age.max() < 80
    assert (table.Y.min(), table.Y.max()) == (25.0, 346.0)


def test_the_yachts_are_those_of_the_archive(uci_folder: Path) -> None:
    """Catches rows or columns that were lost on the way into the package."""
    table = load_yacht()
    assert (table.X.shape, table.Y.shape, table.target_name) == ((308, 6), (308, 1), "resistance")

    split = load_uci("yacht", 0, folder=uci_folder)
    parts = [(split.X_train, split.Y_train), (split.X_test, split.Y_test)]
    rows = np.vstack([np.hstack(part) for part in parts])
    ours = np.hstack([table.X, table.Y])
    np.testing.assert_array_equal(ours[np.lexsort(ours.T)], rows[np.lexsort(rows.T)])
