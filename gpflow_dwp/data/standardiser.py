"""Columns brought to mean 0 and standard deviation 1, and predictions brought back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpflow_dwp.validation import Array, are_constant, check_matrix

__all__ = ["Standardiser", "root_mean_square"]


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
    def fit(
        cls,
        values: npt.ArrayLike,
        *,
        weights: npt.ArrayLike | None = None,
        name: str = "values",
    ) -> Standardiser:
        """Mean and population standard deviation of each column.

        A column that is constant but for rounding gets scale 1: it becomes zero instead of a
        division by zero, and as an input it does no harm.

        :param values: Training rows in raw units, [N, D]; no others.
        :param weights: How often each row counts, [N], positive; None for once.
        :param name: What messages call the values.
        :raises ValueError: If the values are not a finite matrix with at least one row, or differ
            by more, or less, than float64 can say.
        """
        rows = check_matrix(name, values)
        constant, unit = are_constant(rows), _power_of_two(rows)
        mean = unit * _mean(rows / unit, weights)
        mean = np.where(constant, rows[0], mean)
        with np.errstate(over="ignore"):
            scale = np.where(constant, 1.0, root_mean_square(rows - mean, weights))
        for column in np.flatnonzero(~((scale >= np.finfo(float).tiny) & (scale < np.inf)))[:1]:
            low, high = rows[:, column].min(), rows[:, column].max()
            raise ValueError(
                f"{name} must be in a unit in which float64 can say how far numbers are apart, got "
                f"{low:g} to {high:g} in column {column + 1}"
            )
        return cls(mean, scale)

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


def root_mean_square(values: Array, weights: npt.ArrayLike | None = None) -> Array:
    """Root of the mean square over the first axis, also where squares are beyond float64."""
    unit = _power_of_two(values)
    return np.asarray(np.sqrt(_mean(np.square(values / unit), weights)) * unit)


def _mean(values: Array, weights: npt.ArrayLike | None) -> Array:
    """The mean over the first axis, of sums that are rounded once.

    So it is the same, to the last bit, whether a row comes three times, anywhere, or has weight 3.
    Draws of a model are a function of its inputs' bits.
    """
    counts = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    columns = values.reshape(len(values), -1).T
    sums = [math.fsum(itertools.chain(*_products(counts, column))) for column in columns]
    return np.reshape(sums, values.shape[1:]) / math.fsum(counts)


def _products(one: Array, other: Array) -> tuple[Array, Array]:
    """Products, and what they are rounded by (Dekker, 1971)."""
    product = one * other
    (high, low), (other_high, other_low) = map(_halves, (one, other))
    rest = product - high * other_high - low * other_high - high * other_low
    return product, low * other_low - rest


def _halves(values: Array) -> tuple[Array, Array]:
    """Two numbers of half as many digits, of which each is the sum."""
    shifted = (2.0**27 + 1.0) * values
    high = shifted - (shifted - values)
    return high, values - high


def _power_of_two(values: Array) -> Array:
    """A unit, by which a division does not round, in which numbers [N, ...] are at most 2."""
    largest = np.minimum(np.abs(values).max(axis=0), np.finfo(float).max)
    return np.ldexp(1.0, np.frexp(largest)[1] - 1)
