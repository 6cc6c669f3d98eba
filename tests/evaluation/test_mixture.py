"""Quantiles of mixtures of normals, the inverse of a sum of SciPy's distribution functions."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr

from gpflow_dwp.evaluation.mixture import mixture_cdf, mixture_quantile

RNG = np.random.default_rng(1)


def test_quantiles_of_many_components_are_found_in_few_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Catches steps of what has converged, and arrays of all levels, points and components."""
    normal = Mock(side_effect=ndtr)
    means, variances = RNG.normal(size=[400, 5]), np.exp(RNG.normal(size=[400, 5]))
    levels = np.array([0.025, 0.3, 0.5, 0.975])
    monkeypatch.setattr("gpflow_dwp.evaluation.mixture.ndtr", normal)
    monkeypatch.setattr("gpflow_dwp.evaluation.mixture._MAX_VALUES", 2_800)
    found = mixture_quantile(levels, means, variances)
    sizes = [call.args[0].size for call in normal.call_args_list]
    assert max(sizes) == 2_800 and sum(sizes) < 10 * levels.size * means.size
    below = stats.norm.cdf(found[:, None], means, np.sqrt(variances)).mean(axis=1)
    np.testing.assert_allclose(below, np.repeat(levels[:, None], 5, axis=1), rtol=1e-12)
    # Squares of such numbers are none.
    wide = mixture_quantile(np.array(0.5), np.array([[-1e200], [0.0], [1e200]]), np.ones([3, 1]))
    np.testing.assert_allclose(wide, 0.0, atol=1e-9)


def test_distribution_functions_are_within_their_range() -> None:
    """Catches sums of rounded weights above 1, which a calibration plot refuses."""
    above = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(1, 200))
        weights = [None, rng.dirichlet(np.ones(size)), np.full(size, 1.0 / size)][seed % 3]
        means, variances = rng.normal(size=[size, 4]), np.exp(3.0 * rng.normal(size=[size, 4]))
        y = np.array([[-1e300], [0.0], [40.0], [1e300]]) * np.ones([1, 4])
        below = mixture_cdf(y, means, variances, weights)
        assert (below >= 0.0).all() and (below <= 1.0).all()
        above += bool(weights is not None and weights @ np.ones(size) > 1.0)
    assert above > 0


@given(
    st.lists(st.tuples(st.floats(-50, 50), st.floats(1e-3, 1e3)), min_size=1, max_size=6),
    st.floats(1e-6, 1.0 - 1e-6),
)
def test_quantile_inverts_the_distribution(
    components: list[tuple[float, float]], level: float
) -> None:
    means, variances = np.array(components).T[:, :, None]
    y = mixture_quantile(np.array(level), means, variances)
    np.testing.assert_allclose(mixture_cdf(y, means, variances), level, rtol=0.0, atol=1e-11)
