"""Kernels of inputs: additive ones, and a separable one."""

from __future__ import annotations

import gpflow.kernels as gk
import numpy as np
import tensorflow as tf

from gpflow_dwp.kernels import SeparableMatern52, additive_kernel

X = np.random.default_rng(0).normal(size=(5, 3))


def test_it_is_the_sum_of_a_joint_kernel_a_line_and_kernels_of_one_input() -> None:
    """Catches a part that is missing or of another column, and shares that are not one in all."""
    kernel = additive_kernel(gk.Matern32, [0.5, 1.3, 4.0], columns=[0, 2])
    joint, linear, *singles = kernel.kernels
    gaps = X[:, None] - X
    expected = 0.3 * gk.Matern32(1.0, [0.5, 1.3, 4.0])(X).numpy() + 0.1 / 3.0 * X @ X.T
    for j, scale in ((0, 0.5), (2, 4.0)):
        r = np.abs(gaps[..., j]) * 3.0 / scale  # √3, and √D
        expected += 0.3 * (1.0 + r) * np.exp(-r)

    np.testing.assert_allclose(kernel(X), expected, rtol=1e-12)
    assert joint.ard and type(linear) is gk.Linear and len(singles) == 2


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
