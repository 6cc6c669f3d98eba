"""Columns of a table in the units of a model, and which cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpflow_dwp.cli.units import fit_standardiser, standardise
from gpflow_dwp.exceptions import TableError

VALUES = np.array([[1.0, 10.0], [3.0, 30.0]])
PATH = Path("t.csv")


def test_columns_are_standardised_and_one_that_is_too_far_is_named() -> None:
    standardiser = fit_standardiser(VALUES, names="ab", path=PATH)

    def scaled(values: np.ndarray) -> np.ndarray:
        place = "row {}".format
        return standardise(standardiser, values, names="ab", path=PATH, place=place)

    np.testing.assert_allclose(scaled(VALUES), [[-1.0, -1.0], [1.0, 1.0]])
    with pytest.raises(TableError, match=r"t.csv: column 'b' holds -1e\+200 in row 1, too far"):
        scaled(np.array([[1.0, 10.0], [1.0, -1e200]]))


def test_a_column_without_a_scale_is_named() -> None:
    with pytest.raises(TableError, match=r"t.csv: values from .* \(column 'b'\) are too large"):
        fit_standardiser(VALUES * [1.0, 1e306], names="ab", path=PATH)
