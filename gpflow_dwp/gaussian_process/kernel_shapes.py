"""Kernels as functions of a vector, their shapes with slopes, and sums over single inputs."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from gpflow.kernels import Kernel, Matern32, Matern52, SquaredExponential

from gpflow_dwp.base import Array
from gpflow_dwp.kernels import LevelsMatern52
from gpflow_dwp.kernels.values import Part, Parts

__all__ = [
    "LOG_LENGTHSCALE",
    "LOG_VARIANCE",
    "SHAPES",
    "Blocks",
    "Covariances",
    "Gaps",
    "SingleInputs",
]

Shape = Callable[[Array], tuple[Array, Array]]
Blocks = list[Array]


def _squared_exponential(squared: Array) -> tuple[Array, Array]:
    k = np.exp(-0.5 * squared)
    return k, -0.5 * k


def _matern32(squared: Array) -> tuple[Array, Array]:
    r = np.sqrt(3.0 * squared)
    decay = np.exp(-r)
    return (1.0 + r) * decay, -1.5 * decay


def _matern52(squared: Array) -> tuple[Array, Array]:
    r = np.sqrt(5.0 * squared)
    decay = np.exp(-r)
    return (1.0 + r + r * r / 3.0) * decay, -5.0 / 6.0 * (1.0 + r) * decay


# k(r²) / variance and its derivative by r².
SHAPES: dict[type[Kernel], Shape] = {
    SquaredExponential: _squared_exponential,
    Matern32: _matern32,
    Matern52: _matern52,
    LevelsMatern52: _matern52,
}
# What standardised inputs and observations can justify.
LOG_LENGTHSCALE = np.log([3e-3, 1e5])
LOG_VARIANCE = np.log([1e-4, 1e8])
_CHUNK = 1 << 13


class Covariances(abc.ABC):
    """Covariances of pairs of inputs, and the diagonal of those of the last input with itself.

    :ivar lengthscales: Which entries of the vector are logarithms of lengthscales, [K].
    """

    lengthscales: npt.NDArray[np.bool_]

    @functools.cached_property
    def scanned(self) -> npt.NDArray[np.bool_]:
        """Which lengthscales initial values are tried of: of a sum those of single inputs, [K]."""
        return self.lengthscales

    @abc.abstractmethod
    def start(self) -> Array:
        """The vector of the kernel's present values."""

    @abc.abstractmethod
    def limits(self) -> Array:
        """Lower and upper limit of each entry, [K, 2]."""

    @abc.abstractmethod
    def values(self, vector: Array) -> Kernel | Parts:
        """The kernel with the values of a vector: parts; without a closed form itself, assigned."""

    @abc.abstractmethod
    def blocks(self, vector: Array) -> Blocks:
        """The matrix of each pair of inputs, and the diagonal."""

    @abc.abstractmethod
    def gradient(self, bars: Sequence[Array]) -> Array:
        """That by the vector, from those by the last blocks."""

    def log_prior(self, vector: Array) -> tuple[float, Array]:
        """The log density of a vector within its limits, up to a constant, and its gradient."""
        return 0.0, np.zeros_like(vector)


class Gaps:
    """Distances of two sets of points in each input; of one set with itself of each pair once.

    :ivar entries: One row an input, [D, E].
    :ivar chunks: Of the E entries, each as many as a processor keeps at hand.
    """

    def __init__(self, a: Array, b: Array) -> None:
        self._lower = np.tril_indices(len(a), -1) if a is b and a.ndim == 2 else None
        if self._lower is None:
            gaps = np.moveaxis(a[..., :, None, :] - b[..., None, :, :], -1, 0)
            self._shape = gaps.shape[1:]
        else:
            gaps = a.T[:, self._lower[0]] - a.T[:, self._lower[1]]
            self._shape = len(a), len(a)
        self.entries = np.abs(gaps.reshape(len(gaps), -1))
        size = self.entries.shape[1]
        self.chunks = [slice(begin, begin + _CHUNK) for begin in range(0, size, _CHUNK)]

    def spread(self, values: Array, diagonal: float) -> Array:
        """The matrix of values [E], of which a set has others with itself on the diagonal."""
        if self._lower is None:
            return values.reshape(self._shape).copy()
        matrix = np.full(self._shape, diagonal)
        matrix[self._lower] = values
        matrix.T[self._lower] = values
        return matrix

    def gather(self, bar: Array) -> tuple[Array, float]:
        """Gradients by values [E], and by the diagonal, from those by the matrix."""
        if self._lower is None:
            return bar.reshape(-1), 0.0
        return bar[self._lower] + bar.T[self._lower], float(np.trace(bar))


class SingleInputs(Covariances):
    """Of log lengthscales, then log variances, of kernels of one input each."""

    def __init__(self, parts: Sequence[Part], pairs: Sequence[tuple[Array, Array]]) -> None:
        self._parts, self._num_rows = parts, len(pairs[-1][1])
        self.lengthscales = np.repeat([True, False], len(parts))
        inputs = np.arange(pairs[0][0].shape[-1])
        columns = np.concatenate([inputs[part.active_dims] for part in parts])
        self._gaps = []
        for a, b in pairs:
            of_parts = a[..., columns]
            gaps = Gaps(of_parts, of_parts if a is b else b[..., columns])
            np.square(gaps.entries, out=gaps.entries)
            self._gaps.append(gaps)

    def start(self) -> Array:
        values = [(float(part.lengthscales), part.variance) for part in self._parts]
        return np.log(values).T.ravel()

    def limits(self) -> Array:
        size = len(self._parts)
        return np.array([LOG_LENGTHSCALE] * size + [LOG_VARIANCE] * size)

    def values(self, vector: Array) -> Parts:
        return tuple(
            part._replace(lengthscales=lengthscale.reshape(np.shape(part.lengthscales)), variance=v)
            for part, lengthscale, v in zip(
                self._parts, *np.exp(vector).reshape(2, -1), strict=True
            )
        )

    def blocks(self, vector: Array) -> Blocks:
        lengthscales, self._variances = np.exp(vector).reshape(2, -1)
        self._shapes, blocks = [], []
        for gaps in self._gaps:
            total, shapes = np.zeros(gaps.entries.shape[1]), np.empty((2, *gaps.entries.shape))
            for chunk in gaps.chunks:
                for j, part in enumerate(self._parts):
                    scaled = gaps.entries[j, chunk] * lengthscales[j] ** -2.0
                    k, slope = SHAPES[part.kind](scaled)
                    slope *= scaled
                    np.multiply(slope, -2.0 * self._variances[j], out=shapes[0, j, chunk])
                    np.multiply(k, self._variances[j], out=shapes[1, j, chunk])
                    total[chunk] += shapes[1, j, chunk]
            self._shapes.append(shapes)
            blocks.append(gaps.spread(total, self._variances.sum()))
        return [*blocks, np.full(self._num_rows, self._variances.sum())]

    def gradient(self, bars: Sequence[Array]) -> Array:
        *of_matrices, of_diagonal = bars
        found = np.zeros((2, len(self._parts)))
        found[1] = self._variances * np.sum(of_diagonal)
        for bar, gaps, shapes in zip(of_matrices, self._gaps, self._shapes, strict=True):
            by_values, by_diagonal = gaps.gather(bar)
            found += shapes @ by_values
            found[1] += self._variances * by_diagonal
        return found.ravel()
