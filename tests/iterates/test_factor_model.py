from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from gpflow_dwp.iterates import FactorModel, generate_factor_model


@pytest.fixture
def model() -> FactorModel:
    return generate_factor_model(6, 2, (1.0, 4.0), seed=3)


def test_density_is_that_of_the_dense_gaussian(model: FactorModel) -> None:
    points = np.random.default_rng(0).standard_normal((5, 6))
    dense = scipy.stats.multivariate_normal(model.mean, model.covariance())

    np.testing.assert_allclose(model.as_distribution().log_prob(points), dense.logpdf(points))


def test_samples_have_the_moments(model: FactorModel) -> None:
    num = 40_000
    samples = np.asarray(model.sample(num, seed=1))
    covariance = np.asarray(model.covariance())

    # Five standard errors; those of a covariance are sqrt((c_ii c_jj + c_ij²) / n).
    diagonal = np.diag(covariance)
    errors = np.sqrt((np.outer(diagonal, diagonal) + covariance**2) / num)
    assert np.all(np.abs(np.cov(samples.T) - covariance) < 5.0 * errors)
    assert np.all(np.abs(samples.mean(0) - model.mean) < 5.0 * np.sqrt(diagonal / num))


def test_several_models_are_sampled_at_once(model: FactorModel) -> None:
    several = FactorModel(*(tf.stack([part, part]) for part in model))

    assert several.sample(7, seed=0).shape == (7, 2, 6)
    assert several.covariance().shape == (2, 6, 6)
    with pytest.raises(ValueError, match="num_samples must be a positive integer, got 0"):
        several.sample(0)


def test_generated_model_has_the_spectrum() -> None:
    model = generate_factor_model(30, 4, (2.0, 9.0), seed=0)

    gram = np.asarray(tf.matmul(model.factors, model.factors, transpose_a=True))
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12)
    assert np.all((np.diag(gram) >= 2.0) & (np.diag(gram) <= 9.0))
    assert np.all((model.variances >= 0.0) & (model.variances <= 9.0))
    again = generate_factor_model(30, 4, (2.0, 9.0), seed=0)
    np.testing.assert_array_equal(model.factors, again.factors)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 4, (1.0, 2.0)), "rank must be at most dimension, 3, got 4"),
        ((0, 1, (1.0, 2.0)), "dimension must be a positive integer, got 0"),
        ((3, 1, (0.0, 2.0)), "spectrum must be an interval of positive numbers"),
        ((3, 1, (3.0, 2.0)), "spectrum must be an interval of positive numbers"),
    ],
)
def test_what_cannot_be_generated(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate_factor_model(*arguments)
