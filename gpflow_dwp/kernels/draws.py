"""A kernel under several draws of its lengthscales and its variance."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from gpflow.kernels import IsotropicStationary, Kernel, Linear, SeparateIndependent

from gpflow_dwp.base import Array
from gpflow_dwp.exceptions import UnsupportedKernelError
from gpflow_dwp.kernels.gram import gram_K, gram_K_cross
from gpflow_dwp.kernels.of_inputs import LevelsMatern52, SeparableMatern52
from gpflow_dwp.kernels.values import parts_of

__all__ = ["KernelDraws", "SeparateDraws", "SumDraws", "draws_of", "num_values"]


def draws_of(kernel: Kernel, logs: Array | tf.Tensor) -> KernelDraws | SeparateDraws:
    """Make S kernels of one.

    :param kernel: An isotropic stationary kernel, a :class:`SeparableMatern52` or a linear one, a
        sum of these, or a ``SeparateIndependent`` of any of them.
    :param logs: Of each draw the logarithms of lengthscales, if there are some, and of the
        variance, of one part after the other, less those of ``kernel``, [S, K].
    :raises UnsupportedKernelError: If the kernel is another one, or has other than K values.
    """
    logs = tf.convert_to_tensor(logs)
    if not logs.shape[1] or logs.shape[1] != num_values(kernel):
        raise UnsupportedKernelError(
            f"draws of a {type(kernel).__name__} must be of {num_values(kernel)} values, got "
            f"{logs.shape[1]}."
        )
    parts = _parts_of(kernel)
    of_parts = tf.split(logs, [num_values(part) for part in parts], axis=1)
    if isinstance(kernel, SeparateIndependent):
        return SeparateDraws(list(map(draws_of, parts, of_parts)))
    drawn = [KernelDraws(part, values) for part, values in zip(parts, of_parts, strict=True)]
    return drawn[0] if len(drawn) == 1 else SumDraws(drawn)


class KernelDraws(Kernel):
    """S kernels of one kind, whose covariances all come at once: [S, N, N], or [S, N].

    It is made for predictions, of the present values of a kernel, and has no parameters: see
    :func:`draws_of`.
    """

    def __init__(self, kernel: Kernel, logs: tf.Tensor) -> None:
        super().__init__(active_dims=kernel.active_dims)
        self.unit = copy.copy(kernel)
        factors = tf.exp(logs)[:, None]
        scales = getattr(kernel, "lengthscales", tf.ones([0], logs.dtype))
        self.lengthscales = factors[..., :-1] * scales  # [S, 1, D], [S, 1, 1] or [S, 1, 0]
        self.variance = factors[..., -1:] * kernel.variance  # [S, 1, 1]
        self.unit.lengthscales = self.unit.variance = tf.ones([], logs.dtype)
        self.unit.active_dims = slice(None)

    @property
    def num_draws(self) -> int:
        """S."""
        return int(self.variance.shape[0])

    def take(self, draws: tf.Tensor) -> KernelDraws:
        """Some of the draws, or some several times."""
        taken = copy.copy(self)
        taken.lengthscales = tf.gather(self.lengthscales, draws)
        taken.variance = tf.gather(self.variance, draws)
        return taken

    def __call__(self, X: tf.Tensor, X2: tf.Tensor | None = None, **kwargs: Any) -> tf.Tensor:
        """As of GPflow's kernels, of inputs [N, D], or [S, N, D] where each draw has its own."""
        X, X2 = self.slice(X, X2)
        return self.K(X, X2) if kwargs.get("full_cov", True) else self.K_diag(X)

    def K(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        """Covariances under each draw, [S, N, N] or [S, N, M]."""
        if isinstance(self.unit, Linear):
            return self.variance * tf.matmul(X, X if X2 is None else X2, transpose_b=True)
        rows = self.scale(X)
        columns = rows if X2 is None else self.scale(X2)
        if isinstance(self.unit, SeparableMatern52):
            product = self.variance
            for a, b in zip(tf.unstack(rows, axis=-1), tf.unstack(columns, axis=-1), strict=True):
                product *= self.unit.K_d((a[:, :, None] - b[:, None, :])[..., None])
            return product
        inner = tf.matmul(rows, columns, transpose_b=True)
        if X2 is None:
            return self.variance * gram_K(self.unit, inner, features=rows)
        norms = (tf.reduce_sum(tf.square(part), axis=-1) for part in (rows, columns))
        return self.variance * gram_K_cross(self.unit, inner, *norms, features=(rows, columns))

    def scale(self, X: tf.Tensor) -> tf.Tensor:
        """Inputs by each draw's lengthscales, [S, N, D]."""
        if isinstance(self.unit, LevelsMatern52):
            return self.unit.scale_by(X, self.lengthscales)
        return X / self.lengthscales

    def K_diag(self, X: tf.Tensor) -> tf.Tensor:
        """Variances under each draw, [S, N]."""
        variances = self.variance[..., 0]
        if isinstance(self.unit, Linear):
            return variances * tf.reduce_sum(tf.square(X), axis=-1)
        return tf.broadcast_to(variances, [tf.shape(variances)[0], tf.shape(X)[-2]])


class SumDraws(KernelDraws):
    """S sums of kernels.

    :param kernels: Draws of the parts.
    """

    def __init__(self, kernels: list[KernelDraws]) -> None:
        Kernel.__init__(self)
        self.kernels, self.variance = kernels, kernels[0].variance

    def take(self, draws: tf.Tensor) -> SumDraws:
        return SumDraws([kernel.take(draws) for kernel in self.kernels])

    def K(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        return tf.add_n([kernel(X, X2) for kernel in self.kernels])

    def K_diag(self, X: tf.Tensor) -> tf.Tensor:
        return tf.add_n([kernel(X, full_cov=False) for kernel in self.kernels])


class SeparateDraws(SeparateIndependent):
    """S draws of the kernel of each of several functions."""

    @property
    def num_draws(self) -> int:
        """S."""
        return int(self.kernels[0].num_draws)

    def take(self, draws: tf.Tensor) -> SeparateDraws:
        """Some of the draws, or some several times."""
        return SeparateDraws([kernel.take(draws) for kernel in self.kernels])


def _parts_of(kernel: Kernel) -> Sequence[Kernel]:
    return kernel.kernels if isinstance(kernel, SeparateIndependent) else parts_of(kernel)


def num_values(kernel: Kernel) -> int:
    """Of how many values draws of a kernel are; 0 where there can be none."""
    parts = _parts_of(kernel)
    if len(parts) > 1 or isinstance(kernel, SeparateIndependent):
        sizes = [num_values(part) for part in parts]
        return sum(sizes) if all(sizes) else 0
    is_known = isinstance(kernel, IsotropicStationary | SeparableMatern52 | Linear)
    if not is_known or kernel.variance.shape.rank:
        return 0
    return 1 + (0 if isinstance(kernel, Linear) else int(kernel.lengthscales.shape.num_elements()))
