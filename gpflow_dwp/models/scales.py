"""A warning of data in units that the starting values of a model are not made for."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from gpflow_dwp.exceptions import ScaleWarning

__all__ = ["warn_of_scales"]

_FACTOR = 30.0


def warn_of_scales(stacklevel: int, **matrices: npt.NDArray[np.float64]) -> None:
    """Warn, once, of columns that are far from mean 0 and standard deviation 1.

    Such are columns with a standard deviation above 30 or below 1 / 30, and those whose mean is
    more than 30 standard deviations from 0. Constants are not, and a column that mostly has one
    value, such as a rare category or a pixel at the edge, may have a small deviation.

    :param stacklevel: As ``warnings.warn`` has it, from here.
    :param matrices: Columns [N, D], with NaN where they are missing, by the names that the caller
        gave them.
    :raises ScaleWarning: As a warning; it names the first such column.
    """
    far = []
    for name, matrix in matrices.items():
        for column, values in enumerate(matrix.T):
            values = values[~np.isnan(values)]
            if not values.size or values.min() == values.max():
                continue
            mean, deviation = values.mean(), values.std()
            mostly_one = np.mean(values == np.median(values)) > 0.5
            scale = max(deviation, 1.0 / _FACTOR) if mostly_one else deviation
            if not 1.0 / _FACTOR <= scale <= _FACTOR or abs(mean) > _FACTOR * scale:
                far.append((name, column, mean, deviation))
    if far:
        name, column, mean, deviation = far[0]
        others = f", and {len(far) - 1} more" if len(far) > 1 else ""
        warnings.warn(
            f"{name} has a column {column + 1} of mean {mean:.3g} and standard deviation "
            f"{deviation:.3g}{others}. Models start with lengthscales, variances and noise for "
            "columns of mean 0 and standard deviation 1, and may learn nothing in other units: "
            f"gpflow_dwp.data.Standardiser.fit({name}).transform({name}) brings them there.",
            ScaleWarning,
            stacklevel=stacklevel + 1,
        )
