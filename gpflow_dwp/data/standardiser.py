"""Columns brought to mean 0 and standard deviation 1, and predictions brought back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from gpflow_dwp.base import Array

__all__ = ["Standardiser"]


@dataclass(frozen=True, eq=False)
class Standardiser:
    """An affine map of each column, ``(value - mean) / scale``.

    Methods take values of any shape [..., D], and raise a :class:`ValueError` if the last axis has
    another length.

    Fit it on training rows only: with test rows in the mean and the scale, the test scores are no
    longer those of a prediction.

    :param mean: Mean of each column in raw units, [D].
    :param scale: Standard deviation of each column in raw units, positive, [D].
    :raises ValueError: If the two are not finite vectors of one length, or a scale is not positive.
    """

    mean: Array
    scale: Array

    def __post_init__(self) -> None:
        mean, scale = np.array(self.mean, np.float64), np.array(self.scale, np.float64)
        if mean.ndim != 1 or mean.shape != scale.shape:
            raise ValueError(
                "mean and scale must be vectors of one length, got shapes "
                f"{list(mean.shape)} and {list(scale.shape)}"
            )
        if not (np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise ValueError("mean and scale must be finite and scale positive")
        for name, value in (("mean", mean), ("scale", scale)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @classmethod
    def fit(cls, values: npt.ArrayLike, *, weights: npt.ArrayLike | None = None) -> Standardiser:
        """Mean and population standard deviation of each column.

        A constant column gets scale 1: it becomes zero instead of a division by zero, and as an
        input it does no harm.

        :param values: Training rows in raw units, [N, D]; no others.
        :param weights: How often each row counts, [N], positive; None for once.
        :raises ValueError: If the values are not a finite matrix with at least one row.
        """
        rows = np.asarray(values, np.float64)
        if rows.ndim != 2 or len(rows) == 0:
            raise ValueError(f"values must have shape [N, D] with N > 0, got {list(rows.shape)}")
        if not np.isfinite(rows).all():
            raise ValueError("values must be finite")
        # Rounding gives a constant column such as 0.1 a deviation of 1e-17.
        constant = rows.min(axis=0) == rows.max(axis=0)
        mean = np.where(constant, rows[0], np.average(rows, axis=0, weights=weights))
        variance = np.average(np.square(rows - mean), axis=0, weights=weights)
        return cls(mean, np.where(constant, 1.0, np.sqrt(variance)))

    def transform(self, values: npt.ArrayLike) -> Array:
        """From raw to standardised units."""
        return (self._columns(values) - self.mean) / self.scale

    def inverse_transform(self, values: npt.ArrayLike) -> Array:
        """From standardised to raw units: for means, samples and quantiles."""
        return self._columns(values) * self.scale + self.mean

    @property
    def log_density_offset(self) -> float:
        """What to add to a log density in standardised units to have it in raw units."""
        return -float(np.log(self.scale).sum())

    def to_dict(self) -> dict[str, list[float]]:
        """Plain lists, for JSON. :meth:`from_dict` gives the same standardiser back, bit by bit."""
        return {"mean": self.mean.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Sequence[float]]) -> Standardiser:
        """The inverse of :meth:`to_dict`."""
        return cls(np.asarray(fields["mean"]), np.asarray(fields["scale"]))

    def _columns(self, values: npt.ArrayLike) -> Array:
        array = np.asarray(values, np.float64)
        if array.ndim == 0 or array.shape[-1] != len(self.mean):
            raise ValueError(
                f"values must have {len(self.mean)} columns, got shape {list(array.shape)}"
            )
        return array
