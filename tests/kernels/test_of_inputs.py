"""Kernels of inputs: additive ones, and a separable one."""

from __future__ import annotations

import gpflow.kernels as gk
import numpy as np
import tensorflow as tf

from gpflow_dwp.kernels import LevelsMatern52, SeparableMatern52, additive_kernel

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


def test_of_levels_it_is_the_kernel_of_numbers_and_points() -> None:
    """Catches coordinates of one category that are added to another's, or to a number."""
    rng = np.random.default_rng(0)
    of_four, of_three = (np.eye(size)[rng.integers(0, size, 7)] for size in (4, 3))
    numbers = rng.normal(size=(7, 3))
    inputs = np.column_stack([numbers[:, :2], of_four, numbers[:, 2:], of_three])
    scales = rng.uniform(0.3, 2.0, 10 + 7)
    kernel = LevelsMatern52(1.3, scales, [0, 0, 1, 1, 1, 1, 0, 2, 2, 2])
    first = inputs / scales[:10]
    second = inputs[:, [2, 3, 4, 5, 7, 8, 9]] / scales[10:]
    blocks = first[:, 2:6], second[:, :4], first[:, 7:], second[:, 4:]
    points = np.column_stack([first[:, [0, 1, 6]], *(each.sum(1) for each in blocks)])
    expected = gk.Matern52(1.3)(points, points[:3])
    np.testing.assert_allclose(kernel(inputs, inputs[:3]), expected, rtol=1e-12)
    without = LevelsMatern52(1.3, SCALES)
    np.testing.assert_allclose(without(X), gk.Matern52(1.3, SCALES)(X), rtol=1e-12)
