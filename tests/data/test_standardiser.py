"""The standardiser undoes itself, and its log density offset is the Jacobian."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from gpflow_dwp.data import Standardiser
from gpflow_dwp.exceptions import TableError

# The deviation of the constant column is rounded to 1e-17.
VALUES = np.array([[1.0, 0.1, -3.0], [2.0, 0.1, 5.0], [4.0, 0.1, 0.0]])


def test_fit_gives_mean_zero_and_population_deviation_one() -> None:
    standardiser = Standardiser.fit(VALUES)
    np.testing.assert_allclose(standardiser.mean, VALUES.mean(0))
    np.testing.assert_allclose(standardiser.scale, [VALUES[:, 0].std(), 1.0, VALUES[:, 2].std()])
    scaled = standardiser.transform(VALUES)
    np.testing.assert_allclose(scaled.mean(0), 0.0, atol=1e-15)
    np.testing.assert_allclose(scaled.std(0), [1.0, 0.0, 1.0])


@given(arrays(np.float64, (5, 2), elements=st.floats(-1e6, 1e6, width=32)))
def test_inverse(values: np.ndarray) -> None:
    standardiser = Standardiser.fit(values)
    again = standardiser.inverse_transform(standardiser.transform(values))
    np.testing.assert_allclose(again, values, rtol=1e-9, atol=1e-9)


def test_density_and_variance_in_raw_units() -> None:
    standardiser = Standardiser([10.0], [3.0])
    mean, variance = np.array([0.2]), np.array([0.5])
    raw_mean = standardiser.inverse_transform(mean)
    raw_variance = standardiser.inverse_transform_variance(variance)
    y = np.array([12.0])
    scaled = stats.norm.logpdf(standardiser.transform(y), mean, np.sqrt(variance))
    raw = stats.norm.logpdf(y, raw_mean, np.sqrt(raw_variance))
    np.testing.assert_allclose(scaled + standardiser.log_density_offset, raw)
    assert isinstance(standardiser.log_density_offset, float)


def test_offset_sums_over_columns() -> None:
    assert Standardiser([0.0, 0.0], [2.0, 5.0]).log_density_offset == pytest.approx(-np.log(10.0))


def test_json_gives_the_same_bits() -> None:
    standardiser = Standardiser.fit(VALUES / 3.0)
    again = Standardiser.from_dict(json.loads(json.dumps(standardiser.to_dict())))
    np.testing.assert_array_equal(again.mean, standardiser.mean)
    np.testing.assert_array_equal(again.scale, standardiser.scale)


def test_is_immutable() -> None:
    standardiser = Standardiser.fit(VALUES)
    with pytest.raises(ValueError, match="read-only"):
        standardiser.mean[0] = 1.0


@pytest.mark.parametrize(
    ("mean", "scale", "message"),
    [
        ([0.0], [0.0], "scale positive"),
        ([0.0], [np.inf], "finite"),
        ([0.0, 1.0], [1.0], r"one length, got shapes \[2\] and \[1\]"),
        (0.0, 1.0, r"one length, got shapes \[\]"),
    ],
)
def test_refuses_bad_parameters(mean: Any, scale: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Standardiser(mean, scale)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones(3), r"shape \[N, D\] with N > 0, got \[3\]"),
        (np.ones([0, 3]), r"got \[0, 3\]"),
        ([[np.nan], [1.0]], "values must be finite"),
    ],
)
def test_refuses_to_fit(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Standardiser.fit(values)


def test_refuses_other_columns() -> None:
    with pytest.raises(ValueError, match=r"3 columns, got shape \[3, 1\]"):
        Standardiser.fit(VALUES).transform(np.ones([3, 1]))


def test_refuses_a_damaged_dictionary() -> None:
    with pytest.raises(ValueError, match=r"missing: \['scale'\]"):
        Standardiser.from_dict({"mean": [0.0]})


def test_a_number_that_is_too_far_is_named() -> None:
    standardiser = Standardiser([2.0, 20.0], [1.0, 10.0])

    def check(values: list[list[float]]) -> None:
        standardiser.check_near(values, names="ab", where="t.csv")

    check([[1.0, 10.0], [1e100, -1e100]])
    with pytest.raises(
        TableError, match=r"t.csv: column 'b' holds -1e\+200 in data row 2, too far"
    ):
        check([[1.0, 10.0], [1.0, -1e200]])
