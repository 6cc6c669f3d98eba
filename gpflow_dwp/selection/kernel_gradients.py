"""Kernels as functions of a vector of parameters, with the gradient of what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel, Matern32, Matern52, SquaredExponential
from gpflow.optimizers import Scipy

from gpflow_dwp.base import Array
from gpflow_dwp.kernels import SeparableMatern52

__all__ = ["Covariances", "covariances_of", "has_closed_form"]

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
_SHAPES: dict[type[Kernel], Shape] = {
    SquaredExponential: _squared_exponential,
    Matern32: _matern32,
    Matern52: _matern52,
}
# What standardised inputs and observations can justify.
_LOG_LENGTHSCALE = np.log([3e-3, 1e5])
_LOG_VARIANCE = np.log([1e-4, 1e4])


class Covariances(Protocol):
    """Covariances of pairs of inputs, and the diagonal of those of the last input with itself."""

    def start(self) -> Array:
        """The vector of the kernel's present values."""

    def limits(self) -> Array:
        """Lower and upper limit of each entry, [K, 2]."""

    def assign(self, vector: Array) -> None:
        """Give the kernel the values of a vector."""

    def blocks(self, vector: Array) -> Blocks:
        """The matrix of each pair of inputs, and the diagonal."""

    def gradient(self, bars: Sequence[Array]) -> Array:
        """That by the vector, from those by the last blocks."""


def covariances_of(kernel: Kernel, pairs: Sequence[tuple[Array, Array]]) -> Covariances:
    """Return the covariances of a kernel: in closed form, or by TensorFlow's tape.

    :param pairs: Inputs, [N, D] and [M, D], or batches of them, [..., N, D] and [..., M, D].
    """
    if type(kernel) is SeparableMatern52:
        return _Separable(kernel, pairs)
    return (_Stationary if has_closed_form(kernel) else _Taped)(kernel, pairs)


def has_closed_form(kernel: Kernel) -> bool:
    """Whether covariances are of log lengthscales, then the log variance, without TensorFlow."""
    return type(kernel) in _SHAPES or type(kernel) is SeparableMatern52


class _Stationary:
    """Of log lengthscales, one or one for each input, and of the log variance."""

    def __init__(self, kernel: Kernel, pairs: Sequence[tuple[Array, Array]]) -> None:
        self.kernel, self.pairs = kernel, pairs
        self._size = int(np.size(kernel.lengthscales))

    def start(self) -> Array:
        lengthscales = np.atleast_1d(self.kernel.lengthscales.numpy())
        return np.log(np.append(lengthscales, self.kernel.variance.numpy()))

    def limits(self) -> Array:
        return np.array([_LOG_LENGTHSCALE] * self._size + [_LOG_VARIANCE])

    def assign(self, vector: Array) -> None:
        values = np.exp(vector)
        self.kernel.lengthscales.assign(values[:-1].reshape(self.kernel.lengthscales.shape))
        self.kernel.variance.assign(values[-1])

    def blocks(self, vector: Array) -> Blocks:
        self._lengthscales, self._variance = np.exp(vector[:-1]), np.exp(vector[-1])
        self._distances = []
        for a, b in self.pairs:
            scaled = a / self._lengthscales
            other = scaled if a is b else b / self._lengthscales
            self._distances.append(_squared_distances(scaled, other))
        shape = _SHAPES[type(self.kernel)]
        self._shapes = [shape(distances) for distances in self._distances]
        diagonal = np.full(len(self.pairs[-1][1]), self._variance)
        return [*(self._variance * k for k, _ in self._shapes), diagonal]

    def gradient(self, bars: Sequence[Array]) -> Array:
        *of_matrices, of_diagonal = bars
        by_lengthscale, by_variance = np.zeros(self._size), np.sum(of_diagonal)
        for bar, (k, slope), r2, (a, b) in zip(
            of_matrices, self._shapes, self._distances, self.pairs, strict=True
        ):
            by_variance += np.sum(bar * k)
            # dr²/d log ℓ = -2 (a - b)²/ℓ².
            W = -2.0 * self._variance * bar * slope
            if self._size == 1:
                by_lengthscale += np.sum(W * r2)
            else:
                squares = _of_columns(W.sum(-1), a**2) + _of_columns(W.sum(-2), b**2)
                squares -= 2.0 * _of_columns(np.ones(a.shape[:-1]), a * (W @ b))
                by_lengthscale += squares / self._lengthscales**2
        return np.append(by_lengthscale, self._variance * by_variance)


class _Separable(_Stationary):
    """The same of a product over inputs."""

    def blocks(self, vector: Array) -> Blocks:
        self._lengthscales, self._variance = np.exp(vector[:-1]), np.exp(vector[-1])
        self._blocks, self._slopes = [], []
        scales = np.sqrt(5.0) / self._lengthscales * np.ones(self.pairs[0][0].shape[-1])
        for a, b in self.pairs:
            decay, product, slopes = 0.0, self._variance, []
            columns, others = (np.moveaxis(each * scales, -1, 0) for each in (a, b))
            for column, other in zip(columns, others, strict=True):
                r = np.abs(column[..., :, None] - other[..., None, :])
                third = r * r / 3.0
                factor = 1.0 + r + third
                decay, product = decay + r, product * factor
                slopes.append(third * (1.0 + r) / factor)  # d log k / d log ℓ
            self._blocks.append(product * np.exp(-decay))
            self._slopes.append(slopes)
        return [*map(np.copy, self._blocks), np.full(len(self.pairs[-1][1]), self._variance)]

    def gradient(self, bars: Sequence[Array]) -> Array:
        *of_matrices, of_diagonal = bars
        by_lengthscale, by_variance = np.zeros(self._size), self._variance * np.sum(of_diagonal)
        for bar, block, slopes in zip(of_matrices, self._blocks, self._slopes, strict=True):
            W = bar * block
            by_variance += W.sum()
            each = [np.vdot(W, slope) for slope in slopes]
            by_lengthscale += each if self._size > 1 else np.sum(each)
        return np.append(by_lengthscale, by_variance)


class _Taped:
    """Of the unconstrained values of any kernel's parameters."""

    def __init__(self, kernel: Kernel, pairs: Sequence[tuple[Array, Array]]) -> None:
        self.kernel, self.pairs = kernel, pairs
        self._variables = kernel.trainable_variables

    def start(self) -> Array:
        return Scipy.pack_tensors(self._variables).numpy().astype(np.float64)

    def limits(self) -> Array:
        return np.array([[-np.inf, np.inf]] * len(self.start()))

    def assign(self, vector: Array) -> None:
        Scipy.assign_tensors(self._variables, Scipy.unpack_tensors(self._variables, vector))

    def blocks(self, vector: Array) -> Blocks:
        self.assign(vector)
        with tf.GradientTape() as tape:
            blocks = [self.kernel(a) if a is b else self.kernel(a, b) for a, b in self.pairs]
            blocks.append(self.kernel(self.pairs[-1][1], full_cov=False))
        self._blocks, self._tape = blocks, tape
        return [np.array(block) for block in blocks]

    def gradient(self, bars: Sequence[Array]) -> Array:
        found = self._tape.gradient(
            self._blocks,
            self._variables,
            list(map(tf.constant, bars)),
            tf.UnconnectedGradients.ZERO,
        )
        return Scipy.pack_tensors(found).numpy()


def _squared_distances(A: Array, B: Array) -> Array:
    """Squared Euclidean distances of rows, [..., N, M]; exactly zero where both are one."""
    distances = A @ (-2.0 * np.swapaxes(B, -1, -2))
    distances += np.sum(A**2, axis=-1)[..., :, None]
    distances += np.sum(B**2, axis=-1)[..., None, :]
    np.maximum(distances, 0.0, out=distances)
    if A is B:
        n = np.arange(A.shape[-2])
        distances[..., n, n] = 0.0
    return distances


def _of_columns(weights: Array, values: Array) -> Array:
    """Sums of each column, weighted, [D], of values [..., N, D]."""
    return np.tensordot(weights, values, weights.ndim)
