"""Data that comes with an installed package, for examples that run without a download."""

from __future__ import annotations

import numpy as np

from gpflow_dwp.data.table import Table
from gpflow_dwp.optional import import_optional

__all__ = ["load_diabetes"]


def load_diabetes() -> Table:
    """Disease progression of 442 diabetes patients a year after ten measurements.

    From scikit-learn, in raw units: age in years, blood pressure and so on, under scikit-learn's
    names. The target, ``progression``, is a score from 25 to 346 without a unit.

    :return: A regression table with 442 rows and 10 inputs.
    :raises ImportError: If scikit-learn is not installed.
    """
    bunch = import_optional("sklearn.datasets", "cli").load_diabetes(scaled=False)
    return Table(
        np.asarray(bunch.data, np.float64),
        np.asarray(bunch.target, np.float64)[:, None],
        tuple(str(name) for name in bunch.feature_names),
        "progression",
    )
