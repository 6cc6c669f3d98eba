from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from distribution_cases import SEED, random_tril
from model_reference import assert_same_mean
from scipy import stats

from gpflow_dwp.distributions import InverseWishart


@pytest.mark.parametrize(
    ("size", "df"), [(1, 1.0), (1, 0.3), (2, 1.5), (3, 3.0), (4, 9.7), (5, 40.0)]
)
def test_log_prob_is_scipys(size: int, df: float) -> None:
    """Of the inverse, which SciPy has for all degrees of freedom, and with its Jacobian."""
    scale_tril = random_tril(size, 2)
    value = np.stack([InverseWishart(size + 3.0, tril).sample(3, seed=SEED) for tril in scale_tril])
    value = np.swapaxes(value, 0, 1)

    got = InverseWishart(df, scale_tril).log_prob(value)

    assert got.shape == [3, 2]
    for i, j in np.ndindex(3, 2):
        scale, inverse = scale_tril[j] @ scale_tril[j].T, np.linalg.inv(value[i, j])
        of_inverse = stats.wishart(df, np.linalg.inv(scale)).logpdf(inverse)
        expected = of_inverse + (size + 1) * np.linalg.slogdet(inverse)[1]
        np.testing.assert_allclose(got[i, j], expected, rtol=1e-9)


@pytest.mark.parametrize(("size", "df"), [(1, 3), (3, 3), (3, 5), (4, 9)])
def test_samples_have_scipys_law(size: int, df: int) -> None:
    # Two-sample Kolmogorov-Smirnov tests of four functionals, at p = 1e-4 (3.9 sigma).
    rng = np.random.default_rng(5)
    scale_tril = random_tril(size)
    ours = InverseWishart(df, scale_tril).sample(4000, seed=[3, 4]).numpy()
    theirs = stats.invwishart(df, scale_tril @ scale_tril.T).rvs(4000, rng)
    theirs = theirs.reshape(ours.shape)
    direction = rng.normal(size=size)
    for functional in (
        lambda g: np.einsum("i,nij,j->n", direction, g, direction),
        lambda g: np.einsum("i,nij,j->n", direction, np.linalg.inv(g), direction),
        lambda g: g[:, -1, 0] / np.sqrt(g[:, -1, -1] * g[:, 0, 0] + 1.0),
        np.linalg.det,
    ):
        assert stats.ks_2samp(functional(ours), functional(theirs)).pvalue > 1e-4


def test_mean_and_variance_are_scipys_and_those_of_samples() -> None:
    scale_tril, df = random_tril(3), 14.5
    distribution = InverseWishart(df, scale_tril)
    theirs = stats.invwishart(df, scale_tril @ scale_tril.T)

    np.testing.assert_allclose(distribution.mean(), theirs.mean())
    np.testing.assert_allclose(distribution.variance(), theirs.var())
    # Every entry within 5 sigma.
    g = distribution.sample(20_000, seed=SEED).numpy()
    assert_same_mean(g, distribution.mean(), 5.0)
    assert_same_mean((g - distribution.mean()) ** 2, distribution.variance(), 5.0)


def test_moments_that_do_not_exist_are_nan() -> None:
    distribution = InverseWishart(np.array([3.9, 4.1, 6.1]), np.eye(3))

    np.testing.assert_array_equal(np.isnan(distribution.mean()[:, 0, 0]), [True, False, False])
    np.testing.assert_array_equal(np.isnan(distribution.variance()[:, 0, 0]), [True, True, False])


def test_gradients_of_samples_in_the_degrees_of_freedom() -> None:
    # Implicit gradients of Gamma variables are not those of their sampler, so: the gradient of the
    # expectation of Ψ/(n - M - 1) within 5 sigma.
    scale_tril, df = random_tril(3), tf.fill([10_000], tf.constant(15.0, tf.float64))
    with tf.GradientTape() as tape:
        tape.watch(df)
        traces = tf.linalg.trace(InverseWishart(df, scale_tril).sample(seed=SEED))
    slopes = tape.gradient(traces, df).numpy()
    assert_same_mean(slopes, -np.sum(scale_tril**2) / (15.0 - 4.0) ** 2, 5.0)
    assert np.std(slopes) / 100.0 < 0.05 * abs(np.mean(slopes))
