"""Data that comes with scikit-learn."""

from __future__ import annotations

from gpflow_dwp.data import load_diabetes


def test_diabetes_is_in_raw_units() -> None:
    table = load_diabetes()
    assert table.X.shape == (442, 10)
    assert table.feature_names[:4] == ("age", "sex", "bmi", "bp")
    assert (table.target_name, table.task) == ("progression", "regression")
    age = table.X[:, 0]
    assert 18 < age.min() < age.max() < 80
    assert (table.Y.min(), table.Y.max()) == (25.0, 346.0)
