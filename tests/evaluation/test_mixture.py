"""Mixtures of normals against scipy and root finding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr

from gpflow_dwp.evaluation.mixture import mixture_cdf, mixture_log_density, mixture_quantile

RNG = np.random.default_rng(1)
MEANS, VARIANCES = RNG.normal(size=[5, 7]), RNG.gamma(2.0, 0.3, size=[5, 7])


def test_cdf_and_density_are_averages_of_components() -> None:
    y = RNG.normal(size=7)
    deviations = np.sqrt(VARIANCES)
    np.testing.assert_allclose(
        mixture_cdf(y, MEANS, VARIANCES), stats.norm.cdf(y, MEANS, deviations).mean(0), rtol=1e-13
    )
    np.testing.assert_allclose(
        mixture_log_density(y, MEANS, VARIANCES),
        np.log(stats.norm.pdf(y, MEANS, deviations).mean(0)),
        rtol=1e-12,
    )


def test_leading_axes_and_numbers() -> None:
    y = RNG.normal(size=[2, 3, 7])
    for function in (mixture_cdf, mixture_log_density):
        np.testing.assert_allclose(
            function(y, MEANS, VARIANCES)[1, 2], function(y[1, 2], MEANS, VARIANCES)
        )
        np.testing.assert_array_equal(
            function(0.3, MEANS, VARIANCES), function(np.full(7, 0.3), MEANS, VARIANCES)
        )


def test_quantiles_of_many_components_are_found_in_few_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Catches steps of what has converged, and arrays of all levels, points and components."""
    sizes: list[int] = []

    def count(z: np.ndarray) -> np.ndarray:
        sizes.append(z.size)
        return ndtr(z)

    means, variances = RNG.normal(size=[400, 5]), np.exp(RNG.normal(size=[400, 5]))
    levels = np.array([0.025, 0.3, 0.5, 0.975])
    monkeypatch.setattr("gpflow_dwp.evaluation.mixture.ndtr", count)
    monkeypatch.setattr("gpflow_dwp.evaluation.mixture._MAX_VALUES", 2_800)
    found = mixture_quantile(levels, means, variances)
    assert max(sizes) == 2_800 and sum(sizes) < 10 * levels.size * means.size
    below = mixture_cdf(found, means, variances)
    np.testing.assert_allclose(below, np.repeat(levels[:, None], 5, axis=1), rtol=1e-12)
    # Squares of such numbers are none.
    wide = mixture_quantile(0.5, [[-1e200], [0.0], [1e200]], np.ones([3, 1]))
    np.testing.assert_allclose(wide, 0.0, atol=1e-9)


def test_log_density_far_away_is_finite() -> None:
    far = mixture_log_density(1e3, np.zeros([2, 1]), np.ones([2, 1]))
    np.testing.assert_allclose(far, -0.5e6 - 0.5 * np.log(2.0 * np.pi))


def test_components_far_apart() -> None:
    """A level within one component is that component's own quantile."""
    means, variances = np.array([[-1e6], [1e3], [1e6]]), np.array([[1e-4], [4.0], [1.0]])
    # 0.1 lies within the first component, a third of the mass; 0.5 in the middle of the second.
    found = mixture_quantile([0.1, 0.5, 0.9], means, variances)[:, 0]
    wanted = [-1e6 + 1e-2 * stats.norm.ppf(0.3), 1e3, 1e6 + stats.norm.ppf(0.7)]
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_a_level_on_the_flat_between_components() -> None:
    means = np.array([[-100.0], [100.0]])
    (found,) = mixture_quantile(0.5, means, np.ones([2, 1]))
    assert -95.0 < found < 95.0


@given(
    st.lists(st.tuples(st.floats(-50, 50), st.floats(1e-3, 1e3)), min_size=1, max_size=6),
    st.floats(1e-6, 1.0 - 1e-6),
)
def test_quantile_inverts_the_distribution(
    components: list[tuple[float, float]], level: float
) -> None:
    means, variances = np.array(components).T[:, :, None]
    y = mixture_quantile(level, means, variances)
    np.testing.assert_allclose(mixture_cdf(y, means, variances), level, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize(
    ("means", "variances", "message"),
    [
        (np.ones(3), np.ones(3), r"shape \[S, N\], got \[3\] and \[3\]"),
        (np.ones([2, 3]), np.ones([2, 1]), r"got \[2, 3\] and \[2, 1\]"),
        (np.ones([0, 3]), np.ones([0, 3]), r"got \[0, 3\]"),
        (np.ones([2, 3]), np.zeros([2, 3]), "variances finite and positive"),
        (np.full([2, 3], np.nan), np.ones([2, 3]), "means must be finite"),
    ],
)
def test_refuses_mixtures(means: Any, variances: Any, message: str) -> None:
    for function in (mixture_cdf, mixture_log_density, mixture_quantile):
        with pytest.raises(ValueError, match=message):
            function(0.5, means, variances)


def test_refuses_points_and_levels() -> None:
    with pytest.raises(ValueError, match=r"y must have shape \[\.\.\., 7\], got \[3\]"):
        mixture_cdf(np.ones(3), MEANS, VARIANCES)
    for levels in (0.0, 1.0, [0.5, 1.2], np.nan, [[0.5]]):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            mixture_quantile(levels, MEANS, VARIANCES)
