"""Data that comes with an installed package, for examples that run without a download."""

from __future__ import annotations

from importlib import resources

import numpy as np

from gpflow_dwp.data.table import Table
from gpflow_dwp.optional import import_optional

__all__ = ["load_diabetes", "load_yacht"]


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


def load_yacht() -> Table:
    """Resistance of 308 sailing yachts in a towing tank, given their hulls and their speed.

    J. Gerritsma, R. Onnink and A. Versluis, "Yacht Hydrodynamics", UCI Machine Learning Repository,
    doi:10.24432/C5XG7R, under CC BY 4.0; the names of columns are ours. Inputs are ratios without a
    unit: position of the centre of buoyancy, prismatic coefficient, length to displacement, beam to
    draught, length to beam, Froude number. The target is the residuary resistance per unit weight
    of displacement.

    :return: A regression table with 308 rows and 6 inputs.
    """
    text = resources.files("gpflow_dwp.data").joinpath("yacht.csv").read_text()
    header, *lines = text.split()
    *inputs, target = header.split(",")
    rows = np.array([line.split(",") for line in lines], np.float64)
    return Table(rows[:, :-1], rows[:, -1:], tuple(inputs), target)
