"""The kernel that is a product over inputs."""

from __future__ import annotations

import gpflow.kernels as gk
import numpy as np
import tensorflow as tf

from gpflow_dwp.kernels import SeparableMatern52

X = np.random.default_rng(0).normal(size=(5, 3))
SCALES = [0.5, 1.3, 4.0]


def test_it_is_the_product_of_kernels_of_one_input() -> None:
    """Catches another formula, and a slope that is lost where points are equal in an input."""
    points = tf.Variable(np.concatenate([X, X[:1]]))
    product = gk.Product([gk.Matern52(1.0, s, active_dims=[i]) for i, s in enumerate(SCALES)])
    values, slopes = [], []
    for kernel in (product, SeparableMatern52(1.7, SCALES)):
        with tf.GradientTape() as tape:
            tape.watch(points)
            covariance = kernel(points, points[:4])
            kept = tf.reduce_sum(covariance[1:5] * np.arange(4.0))
        values.append(covariance.numpy())
        slopes.append(tape.gradient(kept, points).numpy())
    np.testing.assert_allclose(values[1], 1.7 * values[0], rtol=1e-12)
    np.testing.assert_allclose(slopes[1], 1.7 * slopes[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(SeparableMatern52(1.7, SCALES)(X, full_cov=False), np.full(5, 1.7))
