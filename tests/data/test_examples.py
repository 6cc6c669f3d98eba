"""Data that comes with the package, and toy functions."""

from __future__ import annotations

import numpy as np
import pytest

from gpflow_dwp.data import load_yacht, step_function, varying_sine


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
