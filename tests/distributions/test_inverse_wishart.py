from __future__ import annotations

import numpy as np
import pytest
import reference
import tensorflow as tf
from model_reference import assert_same_mean
from scipy import special, stats

from gpflow_dwp.distributions import InverseWishart

SEED = [11, 12]


def random_tril(size: int, *batch: int, seed: int = 0) -> np.ndarray:
    return reference.random_tril(np.random.default_rng(seed), *batch, size, size)


def draw_in_numpy(rng: np.random.Generator, df: int, scale: np.ndarray, num: int) -> np.ndarray:
    """Invert W(Ψ⁻¹, n) matrices, made of n Gaussian columns each."""
    columns = np.linalg.cholesky(np.linalg.inv(scale)) @ rng.normal(size=(num, len(scale), df))
    return np.linalg.inv(columns @ np.swapaxes(columns, -1, -2))


def log_density(g: np.ndarray, df: float, scale: np.ndarray) -> float:
    """The formula of the class, term by term."""
    size = len(g)
    return (
        0.5 * df * np.linalg.slogdet(scale)[1]
        - 0.5 * df * size * np.log(2.0)
        - special.multigammaln(0.5 * df, size)
        - 0.5 * (df + size + 1) * np.linalg.slogdet(g)[1]
        - 0.5 * np.trace(scale @ np.linalg.inv(g))
    )


@pytest.mark.parametrize(
    ("size", "df"), [(1, 1.0), (1, 0.3), (2, 1.5), (3, 3.0), (4, 9.7), (5, 40.0)]
)
def test_log_prob_is_scipys(size: int, df: float) -> None:
    scale_tril = random_tril(size, 2)
    value = np.stack([InverseWishart(size + 3.0, tril).sample(3, seed=SEED) for tril in scale_tril])
    value = np.swapaxes(value, 0, 1)

    got = InverseWishart(df, scale_tril).log_prob(value)

    assert got.shape == [3, 2]
    for i, j in np.ndindex(3, 2):
        scale = scale_tril[j] @ scale_tril[j].T
        np.testing.assert_allclose(got[i, j], log_density(value[i, j], df, scale), rtol=1e-9)
        if df >= size:
            expected = stats.invwishart(df, scale).logpdf(value[i, j])
            np.testing.assert_allclose(got[i, j], expected, rtol=1e-9)


@pytest.mark.parametrize(("size", "df"), [(1, 3), (3, 3), (3, 5), (4, 9)])
def test_samples_have_the_law_of_inverted_outer_products(size: int, df: int) -> None:
    # Two-sample Kolmogorov-Smirnov tests of four functionals, at p = 1e-4 (3.9 sigma).
    rng = np.random.default_rng(5)
    scale_tril = random_tril(size)
    ours = InverseWishart(df, scale_tril).sample(4000, seed=[3, 4]).numpy()
    theirs = draw_in_numpy(rng, df, scale_tril @ scale_tril.T, 4000)
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
