"""Covariances by a vector of parameters, with the gradient of what is made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel, Linear
from gpflow.optimizers import Scipy

from gpflow_dwp.base import Array
from gpflow_dwp.gaussian_process.kernel_shapes import (
    LOG_LENGTHSCALE,
    LOG_VARIANCE,
    SHAPES,
    Blocks,
    Covariances,
    Gaps,
    SingleInputs,
)
from gpflow_dwp.kernels import LevelsMatern52, SeparableMatern52
from gpflow_dwp.kernels.of_inputs import places_of_levels
from gpflow_dwp.kernels.values import Part, Parts, is_of_one_input, parts_of, values_of

__all__ = ["CLOSED_FORMS", "assigned", "covariance", "covariances_of"]

# Those whose covariances are of log lengthscales and log variances, without TensorFlow.
CLOSED_FORMS = (*SHAPES, SeparableMatern52, Linear)

# Of a part of a sum: it may be next to nothing.
_LOG_VARIANCE_OF_PART = np.log([1e-8, 1e8])


def covariances_of(kernel: Kernel | Parts, pairs: Sequence[tuple[Array, Array]]) -> Covariances:
    """Return the covariances of a kernel: in closed form, or by TensorFlow's tape.

    :param pairs: Inputs, [N, D] and [M, D], or batches of them, [..., N, D] and [..., M, D].
    """
    if isinstance(kernel, Kernel):
        parts = parts_of(kernel)
        if not all(type(part) in CLOSED_FORMS and part.variance.shape == () for part in parts):
            return _Taped(kernel, pairs)
        kernel = values_of(kernel)
    return _of_part(kernel[0], pairs) if len(kernel) == 1 else _Sum(kernel, pairs)


def covariance(kernel: Kernel | Parts, a: Array, b: Array | None = None) -> Array:
    """The matrix of inputs [..., N, D] with others [..., M, D], or with themselves."""
    if isinstance(kernel, Kernel):
        return np.array(kernel(a, b))
    covariances = covariances_of(kernel, [(a, a if b is None else b)])
    return covariances.blocks(covariances.start())[0]


def assigned(kernel: Kernel | Parts, values: Kernel | Parts) -> Kernel | Parts:
    """Return a kernel with other values, in place where it is GPflow's."""
    if isinstance(kernel, Kernel) and not isinstance(values, Kernel):
        for part, value in zip(parts_of(kernel), values, strict=True):
            part.variance.assign(value.variance)
            if np.size(value.lengthscales):
                part.lengthscales.assign(value.lengthscales)
        return kernel
    return values


def _of_part(part: Part, pairs: Sequence[tuple[Array, Array]]) -> Covariances:
    kinds: dict[type[Kernel], Callable[..., Covariances]]
    kinds = {Linear: _Linear, SeparableMatern52: _Separable}
    if part.categories:
        kinds[LevelsMatern52] = _Levels
    columns = part.active_dims
    return kinds.get(part.kind, _Stationary)(part, [_sliced(pair, columns) for pair in pairs])


class _Stationary(Covariances):
    """Of log lengthscales, one or one for each input, and of the log variance."""

    def __init__(self, part: Part, pairs: Sequence[tuple[Array, Array]]) -> None:
        self.part, self.pairs = part, pairs
        self._size = np.size(part.lengthscales)
        self.lengthscales = np.arange(self._size + 1) < self._size

    def start(self) -> Array:
        return np.log(np.append(self.part.lengthscales, self.part.variance))

    def limits(self) -> Array:
        return np.array([LOG_LENGTHSCALE] * self._size + [LOG_VARIANCE])

    def values(self, vector: Array) -> Parts:
        values = np.exp(vector)
        lengthscales = values[:-1].reshape(np.shape(self.part.lengthscales))
        return (self.part._replace(lengthscales=lengthscales, variance=values[-1]),)

    def blocks(self, vector: Array) -> Blocks:
        self._lengthscales, self._variance = np.exp(vector[:-1]), np.exp(vector[-1])
        self._distances = []
        for a, b in self.pairs:
            scaled = self._scaled(a)
            other = scaled if a is b else self._scaled(b)
            self._distances.append(_squared_distances(scaled, other))
        shape = SHAPES[self.part.kind]
        self._shapes = [shape(distances) for distances in self._distances]
        diagonal = np.full(len(self.pairs[-1][1]), self._variance)
        return [*(self._variance * k for k, _ in self._shapes), diagonal]

    def _scaled(self, X: Array) -> Array:
        return X / self._lengthscales

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
                by_lengthscale += self._by_lengthscales(W, a, b)
        return np.append(by_lengthscale, self._variance * by_variance)

    def _by_lengthscales(self, W: Array, a: Array, b: Array) -> Array:
        squares = _of_columns(W.sum(-1), a**2) + _of_columns(W.sum(-2), b**2)
        squares -= 2.0 * _of_columns(np.ones(a.shape[:-1]), a * (W @ b))
        return squares / self._lengthscales**2


class _Levels(_Stationary):
    """The same of numbers and of points of levels: inputs have a column for each lengthscale."""

    def __init__(self, part: Part, pairs: Sequence[tuple[Array, Array]]) -> None:
        columns, self._shared = places_of_levels(part.categories)
        super().__init__(part, [_sliced(pair, columns) for pair in pairs])

    def _scaled(self, X: Array) -> Array:
        return super()._scaled(X) @ self._shared

    def _by_lengthscales(self, W: Array, a: Array, b: Array) -> Array:
        # dr²/d log ℓ = -2 (a - b) (z - z') / ℓ, where z are coordinates.
        a, b = a / self._lengthscales, b / self._lengthscales
        at_a, at_b = (each @ self._shared @ self._shared.T for each in (a, b))
        products = _of_columns(W.sum(-1), a * at_a) + _of_columns(W.sum(-2), b * at_b)
        mixed = at_a * (W @ b) + a * (W @ at_b)
        return products - _of_columns(np.ones(a.shape[:-1]), mixed)


class _Separable(_Stationary):
    """The same of a product over inputs."""

    def __init__(self, part: Part, pairs: Sequence[tuple[Array, Array]]) -> None:
        super().__init__(part, pairs)
        self._gaps = [Gaps(*pair) for pair in pairs]

    def blocks(self, vector: Array) -> Blocks:
        self._variance, self._values, self._slopes = np.exp(vector[-1]), [], []
        scales = np.sqrt(5.0) / np.exp(vector[:-1]) * np.ones(self.pairs[0][0].shape[-1])
        for gaps in self._gaps:
            values, slopes = np.empty(gaps.entries.shape[1]), np.empty_like(gaps.entries)
            for chunk in gaps.chunks:
                decay, product = 0.0, self._variance
                for gap, scale, slope in zip(gaps.entries[:, chunk], scales, slopes, strict=True):
                    r = gap * scale
                    third, above = r * r / 3.0, 1.0 + r
                    factor = above + third
                    decay, product = decay + r, product * factor
                    slope[chunk] = third * above / factor  # d log k / d log ℓ
                values[chunk] = product * np.exp(-decay)
            self._values.append(values)
            self._slopes.append(slopes)
        blocks = map(lambda gaps, k: gaps.spread(k, self._variance), self._gaps, self._values)
        return [*blocks, np.full(len(self.pairs[-1][1]), self._variance)]

    def gradient(self, bars: Sequence[Array]) -> Array:
        *of_matrices, of_diagonal = bars
        by_lengthscale, by_variance = np.zeros(self._size), self._variance * np.sum(of_diagonal)
        for bar, gaps, values, slopes in zip(
            of_matrices, self._gaps, self._values, self._slopes, strict=True
        ):
            by_values, by_diagonal = gaps.gather(bar)
            W = by_values * values
            by_variance += W.sum() + self._variance * by_diagonal
            each = slopes @ W
            by_lengthscale += each if self._size > 1 else each.sum()
        return np.append(by_lengthscale, by_variance)


class _Linear(Covariances):
    """Of the log variance of a linear kernel."""

    def __init__(self, part: Part, pairs: Sequence[tuple[Array, Array]]) -> None:
        self.part, self.lengthscales = part, np.array([False])
        self._products = [a @ np.swapaxes(b, -1, -2) for a, b in pairs]
        rows = pairs[-1][1]
        rows = rows if rows.ndim == 2 else rows[:, -1]  # of a batch the last of each
        self._products.append(np.sum(rows**2, axis=1))

    def start(self) -> Array:
        return np.log([self.part.variance])

    def limits(self) -> Array:
        return LOG_VARIANCE[None]

    def values(self, vector: Array) -> Parts:
        return (self.part._replace(variance=np.exp(vector[0])),)

    def blocks(self, vector: Array) -> Blocks:
        self._variance = np.exp(vector[0])
        return [self._variance * each for each in self._products]

    def gradient(self, bars: Sequence[Array]) -> Array:
        each = map(np.vdot, bars, self._products)
        return np.array([self._variance * sum(each)])


class _Sum(Covariances):
    """Of the parts of a sum, one after the other; those of single inputs last and together."""

    def __init__(self, parts: Parts, pairs: Sequence[tuple[Array, Array]]) -> None:
        is_single = np.array([is_of_one_input(each) and each.kind in SHAPES for each in parts])
        self._order = np.argsort(is_single, kind="stable")
        singles = [parts[i] for i in np.flatnonzero(is_single)]
        self._parts = [_of_part(parts[i], pairs) for i in np.flatnonzero(~is_single)]
        if singles:
            self._parts.append(SingleInputs(singles, pairs))
        sizes = [len(part.lengthscales) for part in self._parts]
        self._ends = np.cumsum(sizes)[:-1]
        self.lengthscales = np.concatenate([part.lengthscales for part in self._parts])
        of_single = np.repeat([isinstance(part, SingleInputs) for part in self._parts], sizes)
        # Of standardised inputs. A function of one bends within about a deviation; among many there
        # may be some that have no say.
        self._centre = np.log(np.where(of_single, 2.0, math.sqrt(pairs[0][0].shape[-1])))
        self._deviation = np.where(of_single, 1.0, 2.0)
        if singles:
            self.scanned = self.lengthscales & of_single

    def start(self) -> Array:
        return np.concatenate([part.start() for part in self._parts])

    def limits(self) -> Array:
        limits = np.concatenate([part.limits() for part in self._parts])
        limits[~self.lengthscales] = _LOG_VARIANCE_OF_PART
        return limits

    def values(self, vector: Array) -> Parts:
        found: list[Any] = []
        for part, values in zip(self._parts, np.split(vector, self._ends), strict=True):
            found += part.values(values)
        return tuple(found[i] for i in np.argsort(self._order))

    def blocks(self, vector: Array) -> Blocks:
        vectors = np.split(vector, self._ends)
        total, *others = map(lambda part, v: part.blocks(v), self._parts, vectors)
        for blocks in others:
            for of_sum, block in zip(total, blocks, strict=True):
                of_sum += block
        return total

    def gradient(self, bars: Sequence[Array]) -> Array:
        return np.concatenate([part.gradient(bars) for part in self._parts])

    def log_prior(self, vector: Array) -> tuple[float, Array]:
        away = self.lengthscales * (vector - self._centre) / self._deviation
        return -0.5 * float(away @ away), -away / self._deviation


class _Taped(Covariances):
    """Of the unconstrained values of any kernel's parameters."""

    def __init__(self, kernel: Kernel, pairs: Sequence[tuple[Array, Array]]) -> None:
        self.kernel, self.pairs = kernel, pairs
        self._variables = kernel.trainable_variables
        self.lengthscales = np.zeros(len(self.start()), bool)

    def start(self) -> Array:
        return _packed(self._variables)

    def limits(self) -> Array:
        return np.full([len(self.start()), 2], [-np.inf, np.inf])

    def values(self, vector: Array) -> Kernel:
        if self._variables:
            Scipy.assign_tensors(self._variables, Scipy.unpack_tensors(self._variables, vector))
        return self.kernel

    def blocks(self, vector: Array) -> Blocks:
        self.values(vector)
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
        return _packed(found)


def _packed(tensors: Sequence[tf.Tensor]) -> Array:
    """All their entries, [K]; of a kernel that is not trained there are none."""
    return Scipy.pack_tensors(tensors).numpy().astype(np.float64) if tensors else np.empty(0)


def _sliced(pair: tuple[Array, Array], columns: Any) -> tuple[Array, Array]:
    """Some columns of both; still one array where they were one."""
    a, b = (each[..., columns] for each in pair)
    return (a, a) if pair[0] is pair[1] else (a, b)


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
