"""What values of kernels tell."""

from __future__ import annotations

import gpflow
import numpy as np

from gpflow_dwp.kernels.values import inverse_scales, parts_of, values_of


def test_scales_are_how_fast_a_sum_falls_along_each_input() -> None:
    """Catches parts that count by their first one alone, and columns that are mixed up."""
    kernel = gpflow.kernels.Sum(
        [
            gpflow.kernels.SquaredExponential(2.0, [0.5, 1.0, 4.0]),
            gpflow.kernels.Linear(3.0),
            gpflow.kernels.SquaredExponential(5.0, 0.3, active_dims=[2]),
        ]
    )
    for parts in (parts_of(kernel), values_of(kernel)):
        scales = inverse_scales(parts, 3).numpy()
        expected = np.sqrt([2.0 / 0.25 / 7.0, 2.0 / 7.0, (2.0 / 16.0 + 5.0 / 0.09) / 7.0])
        np.testing.assert_allclose(scales, expected)
    stationary = gpflow.kernels.Sum([kernel.kernels[0], kernel.kernels[2]])
    for column, scale in enumerate(expected):
        step = 1e-3 * np.eye(3)[[column]]
        fall = 7.0 - stationary(np.zeros((1, 3)), step).numpy().item()
        np.testing.assert_allclose(fall, 0.5 * 7.0 * (1e-3 * scale) ** 2, rtol=1e-3)
