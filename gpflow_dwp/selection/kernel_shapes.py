"""Shapes of kernels with their slopes, and sums of kernels of single inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from gpflow.kernels import Kernel, Matern32, Matern52, SquaredExponential

from gpflow_dwp.base import Array
from gpflow_dwp.kernels.values import Part, Parts

__all__ = ["LOG_LENGTHSCALE", "LOG_VARIANCE", "SHAPES", "Blocks", "Flat", "SingleInputs"]

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
}
# What standardised inputs and observations can justify.
LOG_LENGTHSCALE = np.log([3e-3, 1e5])
LOG_VARIANCE = np.log([1e-4, 1e8])


class Flat:
    """Of a vector that all values are alike for, within its limits.

    :param lengthscales: Which entries are logarithms of lengthscales, [K].
    """

    lengthscales: npt.NDArray[np.bool_]

    @property
    def scanned(self) -> npt.NDArray[np.bool_]:
        """All lengthscales, [K]."""
        return self.lengthscales

    def log_prior(self, vector: Array) -> tuple[float, Array]:
        """As :class:`~gpflow_dwp.selection.kernel_gradients.Covariances` has it."""
        return 0.0, np.zeros_like(vector)


class SingleInputs(Flat):
    """Of log lengthscales, then log variances, of kernels of one input each.

    Of a symmetric matrix all are evaluated below the diagonal alone: they are most of the time.
    """

    def __init__(self, parts: Sequence[Part], pairs: Sequence[tuple[Array, Array]]) -> None:
        self._parts, self._num_rows = parts, len(pairs[-1][1])
        self.lengthscales = np.repeat([True, False], len(parts))
        self._lower = [
            np.tril_indices(len(a), -1) if a is b and a.ndim == 2 else None for a, b in pairs
        ]
        self._squares = []
        for (a, b), lower in zip(pairs, self._lower, strict=True):
            columns = (
                [a[..., part.active_dims] for part in parts],
                [b[..., part.active_dims] for part in parts],
            )
            gaps = [
                x[lower[0], 0] - x[lower[1], 0] if lower else x - np.swapaxes(y, -1, -2)
                for x, y in zip(*columns, strict=True)
            ]
            self._squares.append([gap * gap for gap in gaps])

    def start(self) -> Array:
        """The vector of the present values."""
        values = [(float(part.lengthscales), part.variance) for part in self._parts]
        return np.log(values).T.ravel()

    def limits(self) -> Array:
        """Lower and upper limit of each entry, [K, 2]."""
        size = len(self._parts)
        return np.array([LOG_LENGTHSCALE] * size + [LOG_VARIANCE] * size)

    def values(self, vector: Array) -> Parts:
        """The parts with the values of a vector."""
        return tuple(
            part._replace(lengthscales=lengthscale.reshape(np.shape(part.lengthscales)), variance=v)
            for part, lengthscale, v in zip(
                self._parts, *np.exp(vector).reshape(2, -1), strict=True
            )
        )

    def blocks(self, vector: Array) -> Blocks:
        """The sum for each pair of inputs, and its diagonal."""
        lengthscales, self._variances = np.exp(vector).reshape(2, -1)
        self._shapes, blocks = [], []
        for squares, lower in zip(self._squares, self._lower, strict=True):
            shapes = []
            for part, square, scale, variance in zip(
                self._parts, squares, lengthscales**-2.0, self._variances, strict=True
            ):
                scaled = square * scale
                k, slope = SHAPES[part.kind](scaled)
                slope *= scaled
                slope *= -2.0 * variance
                k *= variance
                shapes.append((k, slope))
            self._shapes.append(shapes)
            total = shapes[0][0].copy()
            for k, _ in shapes[1:]:
                total += k
            if lower:
                half, size = total, lower[0][-1] + 1
                total = np.full((size, size), self._variances.sum())
                total[lower] = half
                total.T[lower] = half
            blocks.append(total)
        return [*blocks, np.full(self._num_rows, self._variances.sum())]

    def gradient(self, bars: Sequence[Array]) -> Array:
        """That by the vector, from those by the last blocks."""
        *of_matrices, of_diagonal = bars
        found = np.zeros((2, len(self._parts)))
        found[1] = self._variances * np.sum(of_diagonal)
        for bar, shapes, lower in zip(of_matrices, self._shapes, self._lower, strict=True):
            if lower:
                found[1] += self._variances * np.trace(bar)
                bar = bar[lower] + bar.T[lower]
            found += np.array([(np.vdot(bar, slope), np.vdot(bar, k)) for k, slope in shapes]).T
        return found.ravel()
