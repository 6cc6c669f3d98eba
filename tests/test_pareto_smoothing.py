"""Importance weights, against densities that are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.pareto_smoothing import pareto_smoothed

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0])
def test_k_hat_is_the_shape_of_the_tail(shape: float) -> None:
    """Catches another sign, and a tail that is cut elsewhere."""
    ratios = RNG.pareto(1.0 / shape, (4_000, 50)) + 1.0
    log_weights, k_hat = pareto_smoothed(np.log(ratios))
    np.testing.assert_allclose(k_hat.mean(), shape, atol=0.08)
    np.testing.assert_allclose(np.exp(log_weights).sum(axis=0), 1.0)
    order = np.argsort(ratios, axis=0)
    assert (np.diff(np.take_along_axis(log_weights, order, axis=0), axis=0) >= 0.0).all()
    equal, k_hat = pareto_smoothed(np.zeros((40, 2)))
    np.testing.assert_allclose(np.exp(equal), 1.0 / 40)
    assert (k_hat == -np.inf).all()


def test_a_row_is_predicted_as_if_draws_had_not_seen_it() -> None:
    """Catches weights the wrong way round: of a normal mean, whose posterior is known. By another
    route: the posterior of the other rows, in closed form."""
    y = np.array([-2.5, -0.3, 0.1, 0.2, 0.4, 1.9])
    N, S = len(y), 20_000
    draws = y.sum() / (N + 1) + RNG.standard_normal(S) / np.sqrt(N + 1)
    means = np.broadcast_to(draws[:, None, None], (S, N, 1)).copy()
    found, k_hat = PredictiveDistribution(means, np.ones((S, N, 1))).without_own_row(y[:, None])
    others = (y.sum() - y) / N
    expected = norm.logpdf(y, others, np.sqrt(1.0 + 1.0 / N))
    np.testing.assert_allclose(found.log_density(y[:, None])[:, 0], expected, atol=0.05)
    assert (k_hat < 0.7).all()


def test_draws_are_weighed_with_all_of_their_nodes() -> None:
    """Catches nodes that are weighed apart, or mixed with those of another draw. By another route:
    the same draws with one node, whose density is that of two."""
    (means, variances), y = RNG.uniform(0.5, 2.0, (2, 50, 4, 1)), RNG.standard_normal((4, 1))
    one = PredictiveDistribution(means, variances)
    nodes = np.tile(means, (2, 1, 1)), np.tile(variances, (2, 1, 1))
    weights = np.repeat([0.3, 0.7], 50) / 50
    found, k_hat = PredictiveDistribution(*nodes, weights=weights, num_nodes=2).without_own_row(y)
    expected, expected_k_hat = one.without_own_row(y)
    np.testing.assert_allclose(k_hat, expected_k_hat)
    np.testing.assert_allclose(found.log_density(y), expected.log_density(y))
    with pytest.raises(ValueError, match="draws of equal weights"):
        PredictiveDistribution(*nodes, weights=weights).without_own_row(y)
