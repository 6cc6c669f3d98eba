"""One-dimensional functions on [-1, 1] that a stationary Gaussian process finds hard."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpflow_dwp.base import Array

__all__ = ["step_function", "varying_sine"]


def step_function(num_data: int = 50, *, noise: float = 0.05, seed: int = 0) -> tuple[Array, Array]:
    """A step from 0 to 1 at x = 0: flat on both sides, with no lengthscale between.

    :param num_data: Number of points.
    :param noise: Standard deviation of the noise; 0 gives the function itself.
    :param seed: The same seed gives the same points.
    :return: Inputs, uniform on [-1, 1] and sorted, and targets; both [num_data, 1].
    :raises ValueError: If there is no point, or the noise is negative.
    """
    return _noisy(lambda x: np.where(x < 0.0, 0.0, 1.0), num_data, noise, seed)


def varying_sine(num_data: int = 50, *, noise: float = 0.05, seed: int = 0) -> tuple[Array, Array]:
    """A smooth sine whose frequency grows from left to right, sin(6π ((x + 1) / 2)³).

    Parameters and what is returned are those of :func:`step_function`.
    """
    return _noisy(lambda x: np.sin(6.0 * np.pi * (0.5 * (x + 1.0)) ** 3), num_data, noise, seed)


def _noisy(
    function: Callable[[Array], Array], num_data: int, noise: float, seed: int
) -> tuple[Array, Array]:
    if num_data < 1:
        raise ValueError(f"num_data must be at least 1, got {num_data}")
    if noise < 0.0:
        raise ValueError(f"noise must not be negative, got {noise}")
    from gpflow_dwp.random import as_generator  # which needs TensorFlow

    rng = as_generator(seed)
    X = np.sort(rng.uniform(-1.0, 1.0, size=(num_data, 1)), axis=0)
    return X, function(X) + noise * rng.normal(size=X.shape)
