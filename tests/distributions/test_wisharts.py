"""Wishart distributions, singular and generalised."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from distribution_cases import make, mixing
from model_reference import assert_same_mean
from scipy import stats

from gpflow_dwp.distributions import SingularWishart

LOG_DENSITIES = {
    "GeneralisedSingularWishart": reference.gw_log_density,
    "AGeneralisedSingularWishart": reference.agw_log_density,
    "ABGeneralisedSingularWishart": reference.abgw_log_density,
}


@pytest.mark.parametrize("name", LOG_DENSITIES)
@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_log_prob_is_that_of_the_paper(name: str, size: int, df: int) -> None:
    rng = np.random.default_rng(10 * size + df)
    parameters = reference.random_parameters(name, rng, size, df, (2,))
    t = reference.random_tril(rng, 2, 2, size, min(df, size))
    g = reference.gram(t, *mixing(name, parameters, size, df))
    got = make(name, parameters, df).log_prob(g)
    tolerance = 1e-8 if name == "GeneralisedSingularWishart" else 1e-7
    for i, j in np.ndindex(2, 2):
        single = {key: value[j] for key, value in parameters.items()}
        expected = LOG_DENSITIES[name](g[i, j], df, **single)
        np.testing.assert_allclose(got[i, j], expected, rtol=tolerance, atol=tolerance)


def draw_grams(rng: np.random.Generator, scale_tril: np.ndarray, df: int, num: int) -> np.ndarray:
    factor = scale_tril @ rng.normal(size=(num, len(scale_tril), df))
    return factor @ np.swapaxes(factor, -1, -2)


@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_log_prob_is_srivastavas(size: int, df: int) -> None:
    rng = np.random.default_rng(10 * size + df)
    scale_tril = reference.random_tril(rng, 2, size, size)
    g = np.stack([draw_grams(rng, tril, df, 3) for tril in scale_tril], axis=1)
    got = SingularWishart(df, scale_tril).log_prob(g)
    for i, j in np.ndindex(3, 2):
        s = scale_tril[j] @ scale_tril[j].T
        expected = reference.singular_wishart_log_density(g[i, j], s, df)
        np.testing.assert_allclose(got[i, j], expected, rtol=1e-7, atol=1e-7)
        if df >= size:
            law = stats.wishart(df, s)
            np.testing.assert_allclose(got[i, j], law.logpdf(g[i, j]), rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(SingularWishart(df, scale_tril[j]).variance(), law.var())


@pytest.mark.parametrize(("size", "df"), [(4, 2), (3, 3), (3, 5)])
def test_samples_have_the_law_of_outer_products(size: int, df: int) -> None:
    # Two-sample Kolmogorov-Smirnov tests of three functionals, at p = 1e-4 (3.9 sigma).
    rng = np.random.default_rng(5)
    scale_tril = reference.random_tril(rng, size, size)
    wishart = SingularWishart(df, scale_tril)
    ours = wishart.sample(4000, seed=[3, 4]).numpy()
    assert_same_mean((ours - wishart.mean()) ** 2, wishart.variance(), 5.0)
    theirs = draw_grams(rng, scale_tril, df, 4000)
    direction = rng.normal(size=size)
    for functional in (
        lambda g: np.einsum("i,nij,j->n", direction, g, direction),
        lambda g: g[:, -1, 0],
        lambda g: np.linalg.det(g[:, : min(df, size), : min(df, size)]),
    ):
        assert stats.ks_2samp(functional(ours), functional(theirs)).pvalue > 1e-4
