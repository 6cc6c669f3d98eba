"""Estimates from samples against the sum over kernels, and what is known of normal samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gpflow_dwp.evaluation import kernel_log_density, shapiro_wilk_statistics


def test_kernel_density_is_a_mixture_of_normals_on_the_samples() -> None:
    rng = np.random.default_rng(0)
    samples, y = rng.normal(size=(50, 3)) * [1.0, 2.0, 0.1], rng.normal(size=3)

    densities = kernel_log_density(y, samples)

    # Silverman's rule in one dimension: (4 / 3S)^(1/5) standard deviations.
    bandwidth = (4.0 / (3.0 * 50)) ** 0.2 * samples.std(axis=0, ddof=1)
    expected = np.log(stats.norm.pdf(y, samples, bandwidth).mean(axis=0))
    np.testing.assert_allclose(densities, expected, rtol=1e-8)


def test_shapiro_wilk_tells_a_normal_from_two() -> None:
    rng = np.random.default_rng(0)
    normal = rng.normal(size=500)
    bimodal = normal + 10.0 * rng.integers(0, 2, size=500)

    statistics = shapiro_wilk_statistics(np.stack([normal, bimodal], axis=1))

    assert statistics[0] > 0.99
    assert statistics[1] < 0.9


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match="samples must have shape"):
        kernel_log_density([0.0], [[1.0]])
    with pytest.raises(ValueError, match="y must have shape"):
        kernel_log_density([0.0, 1.0], [[1.0], [2.0]])
    with pytest.raises(ValueError, match="S at least 3"):
        shapiro_wilk_statistics([[1.0], [2.0]])
