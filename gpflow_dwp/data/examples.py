"""Data for examples that run without a download: a table, two functions on [-1, 1]."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from gpflow_dwp.data.table import Table

if TYPE_CHECKING:
    from gpflow_dwp.base import Array

__all__ = ["load_yacht", "step_function", "varying_sine"]


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


def step_function(num_data: int = 50, *, noise: float = 0.05, seed: int = 0) -> tuple[Array, Array]:
    """A step from 0 to 1 at x = 0: flat on both sides, with no lengthscale between.

    :param num_data: Number of points.
    :param noise: Standard deviation of the noise; 0 gives the function itself.
    :param seed: The same seed gives the same points.
    :return: Inputs, uniform on [-1, 1] and sorted, and targets; both [num_data, 1].
    """
    X, errors = _points(num_data, noise, seed)
    return X, np.where(X < 0.0, 0.0, 1.0) + errors


def varying_sine(num_data: int = 50, *, noise: float = 0.05, seed: int = 0) -> tuple[Array, Array]:
    """A smooth sine whose frequency grows from left to right, sin(6π ((x + 1) / 2)³).

    Parameters and what is returned are those of :func:`step_function`.
    """
    X, errors = _points(num_data, noise, seed)
    return X, np.sin(6.0 * np.pi * (0.5 * (X + 1.0)) ** 3) + errors


def _points(num_data: int, noise: float, seed: int) -> tuple[Array, Array]:
    """Inputs and errors, both [num_data, 1]."""
    from gpflow_dwp.random import as_generator  # which needs TensorFlow

    rng = as_generator(seed)
    X = np.sort(rng.uniform(-1.0, 1.0, size=(num_data, 1)), axis=0)
    return X, noise * rng.normal(size=X.shape)
