"""A kernel under several draws of its lengthscales and its variance."""

from __future__ import annotations

import copy
from typing import Any

import tensorflow as tf
from gpflow.kernels import IsotropicStationary, Kernel

from gpflow_dwp.base import Array
from gpflow_dwp.exceptions import UnsupportedKernelError
from gpflow_dwp.kernels.gram import gram_K, gram_K_cross
from gpflow_dwp.kernels.separable_matern52 import SeparableMatern52

__all__ = ["KernelDraws", "num_values"]


class KernelDraws(Kernel):
    """S kernels of one kind, whose covariances all come at once: [S, N, N], or [S, N].

    It is made for predictions, of the present values of a kernel, and has no parameters.

    :param kernel: A stationary kernel of all inputs: an isotropic one, or a
        :class:`SeparableMatern52`.
    :param logs: Of each draw the logarithms of its lengthscales and, last, of its variance, less
        those of ``kernel``, [S, K].
    :raises UnsupportedKernelError: If the kernel is another one, or has other than K values.
    """

    def __init__(self, kernel: Kernel, logs: Array | tf.Tensor) -> None:
        super().__init__()
        self.unit = copy.copy(kernel)
        logs = tf.convert_to_tensor(logs)
        if logs.shape[1] != num_values(kernel):
            raise UnsupportedKernelError(
                f"draws of a {type(kernel).__name__} must be of {num_values(kernel)} values, got "
                f"{logs.shape[1]}."
            )
        factors = tf.exp(logs)[:, None]
        self.lengthscales = factors[..., :-1] * kernel.lengthscales  # [S, 1, D] or [S, 1, 1]
        self.variance = factors[..., -1:] * kernel.variance  # [S, 1, 1]
        self.unit.lengthscales = self.unit.variance = tf.ones([], logs.dtype)

    def take(self, draws: tf.Tensor) -> KernelDraws:
        """Some of the draws, or some several times."""
        taken = copy.copy(self)
        taken.lengthscales, taken.variance = (
            tf.gather(values, draws) for values in (self.lengthscales, self.variance)
        )
        return taken

    def __call__(self, X: tf.Tensor, X2: tf.Tensor | None = None, **kwargs: Any) -> tf.Tensor:
        """As of GPflow's kernels, of inputs [N, D], or [S, N, D] where each draw has its own."""
        if not kwargs.get("full_cov", True):
            return self.K_diag(X)
        return self.K(X, X2)

    def K(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        """Covariances under each draw, [S, N, N] or [S, N, M]."""
        rows = X / self.lengthscales
        columns = rows if X2 is None else X2 / self.lengthscales
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

    def K_diag(self, X: tf.Tensor) -> tf.Tensor:
        """Variances under each draw, [S, N]."""
        variances = self.variance[..., 0]
        return tf.broadcast_to(variances, [tf.shape(variances)[0], tf.shape(X)[-2]])


def num_values(kernel: Kernel) -> int:
    """Of how many values draws of a kernel are; 0 where there can be none."""
    has_draws = isinstance(kernel, IsotropicStationary | SeparableMatern52)
    if not has_draws or kernel.active_dims != slice(None) or kernel.variance.shape.rank:
        return 0
    return int(kernel.lengthscales.shape.num_elements()) + 1
