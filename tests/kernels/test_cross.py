from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow.kernels as gk
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.kernels.gram import cross_covariance, kernel_in_dtype


class OwnDistance(gk.SquaredExponential):
    """A user's kernel of another distance."""

    def scaled_squared_euclid_dist(self, X: Any, X2: Any = None) -> tf.Tensor:
        return 3.0 * super().scaled_squared_euclid_dist(X, X2)


class OwnCall(gk.Matern12):
    """A user's kernel that is called in another way."""

    def __call__(self, *arguments: Any, **settings: Any) -> tf.Tensor:
        return 2.0 * super().__call__(*arguments, **settings)


KERNELS: dict[str, Callable[[], gk.Kernel]] = {
    "squared exponential": lambda: gk.SquaredExponential(1.7, [0.6, 0.3], active_dims=[0, 2]),
    "Matern 1/2": lambda: gk.Matern12(1.7, 0.6, active_dims=slice(1, 3)),
    "rational quadratic": lambda: gk.RationalQuadratic(1.7, 0.6, alpha=0.4),
    "cosine": lambda: gk.Cosine(1.7, 0.6),
    "sum": lambda: gk.Matern52() + gk.Linear(),
    "own distance": OwnDistance,
    "own call": OwnCall,
}


@pytest.mark.parametrize("dtype", [tf.float64, tf.float32])
@pytest.mark.parametrize("name", KERNELS)
def test_it_is_the_kernel(name: str, dtype: tf.DType) -> None:
    """Catches a lost scale or column, and a user's formula that is passed over."""
    rng = np.random.default_rng(0)
    points, targets = (tf.constant(rng.normal(size=[n, 3]), dtype) for n in (4, 5))
    kernel = kernel_in_dtype(KERNELS[name](), dtype)

    values, expected = (f(kernel, points, targets) for f in (cross_covariance, _call))

    np.testing.assert_allclose(values, expected, rtol=1e-12 if dtype == tf.float64 else 1e-4)


def _call(kernel: gk.Kernel, points: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    return kernel(points, targets)
