"""The standardiser is scikit-learn's scaling."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from gpflow_dwp.data import Standardiser

# The deviation of the constant column is rounded to 1e-17.
VALUES = np.array([[1.0, 0.1, -3.0], [2.0, 0.1, 5.0], [4.0, 0.1, 0.0]])


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5]])
def test_scales_as_scikit_learn_does(weights: Any) -> None:
    """Would catch a sample deviation, weights that are not used, and a division by zero."""
    ours, theirs = Standardiser.fit(VALUES, weights=weights), StandardScaler()
    theirs.fit(VALUES, sample_weight=weights)
    np.testing.assert_allclose(ours.mean, theirs.mean_)
    np.testing.assert_allclose(ours.scale, theirs.scale_)
    scaled = ours.transform(VALUES)
    np.testing.assert_allclose(scaled, theirs.transform(VALUES), atol=1e-15)
    np.testing.assert_allclose(ours.inverse_transform(scaled), VALUES, atol=1e-15)


def test_json_gives_the_same_bits() -> None:
    """Would catch a run whose predictions change when it is read."""
    standardiser = Standardiser.fit(VALUES / 3.0)
    again = Standardiser.from_dict(json.loads(json.dumps(standardiser.to_dict())))
    np.testing.assert_array_equal(again.mean, standardiser.mean)
    np.testing.assert_array_equal(again.scale, standardiser.scale)
    with pytest.raises(ValueError, match="read-only"):
        standardiser.mean[0] = 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Standardiser([0.0], [0.0]), "scale positive"),
        (lambda: Standardiser([0.0, 1.0], [1.0]), r"one length, got shapes \[2\] and \[1\]"),
        (lambda: Standardiser.fit(np.ones(3)), "two axes"),
        (lambda: Standardiser.fit([[np.nan], [1.0]]), "values holds nan in row 1"),
        (lambda: Standardiser.fit(VALUES).transform(np.ones([3, 1])), r"3 columns, got shape"),
    ],
)
def test_refuses(call: Any, message: str) -> None:
    """Would catch a mistake that becomes NaN."""
    with pytest.raises(ValueError, match=message):
        call()


def test_a_row_of_weight_w_is_w_rows_to_the_last_bit() -> None:
    """Catches sums whose rounding depends on order, which draws of a model would show."""
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(0.1, [1.0, 1e-150, 1e150], (40, 3)), rng.integers(1, 5, 40)
    repeated = rng.permutation(np.repeat(rows, weights, axis=0))
    one, other = Standardiser.fit(rows, weights=weights), Standardiser.fit(repeated)
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.scale, other.scale)
