from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from gpflow_dwp.iterates import FactorModel


@pytest.fixture
def model() -> FactorModel:
    rng = np.random.default_rng(3)
    parts = rng.normal(size=6), rng.normal(size=(6, 2)), rng.uniform(0.5, 4.0, 6)
    return FactorModel(*parts)


def test_density_is_that_of_the_dense_gaussian(model: FactorModel) -> None:
    points = np.random.default_rng(0).standard_normal((5, 6))
    covariance = np.diag(model.variances) + model.factors @ np.transpose(model.factors)
    dense = scipy.stats.multivariate_normal(model.mean, covariance)

    np.testing.assert_allclose(model.covariance(), covariance)
    np.testing.assert_allclose(model.as_distribution().log_prob(points), dense.logpdf(points))


def test_samples_have_the_moments(model: FactorModel) -> None:
    """Within five standard errors, sqrt((c_ii c_jj + c_ij²) / n) of covariances."""
    num = 40_000
    samples = np.asarray(model.sample(num, seed=1))
    covariance = np.asarray(model.covariance())
    diagonal = np.diag(covariance)
    errors = np.sqrt((np.outer(diagonal, diagonal) + covariance**2) / num)
    assert samples.shape == (num, 6)
    assert np.all(np.abs(np.cov(samples.T) - covariance) < 5.0 * errors)
    assert np.all(np.abs(samples.mean(0) - model.mean) < 5.0 * np.sqrt(diagonal / num))
    with pytest.raises(ValueError, match="num_samples must be a positive integer, got 0"):
        model.sample(0)
