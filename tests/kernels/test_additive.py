"""The kernel of a sum of functions."""

from __future__ import annotations

import gpflow.kernels as gk
import numpy as np

from gpflow_dwp.kernels import additive_kernel

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
