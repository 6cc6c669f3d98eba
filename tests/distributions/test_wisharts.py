"""Wishart distributions, singular and generalised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from distribution_cases import make, mixing
from model_reference import assert_same_mean
from scipy import stats

from gpflow_dwp import distributions
from gpflow_dwp.distributions import (
    GeneralisedSingularWishart,
    SingularWishart,
)

LOG_DENSITIES = {
    "GeneralisedSingularWishart": reference.gw_log_density,
    "AGeneralisedSingularWishart": reference.agw_log_density,
    "ABGeneralisedSingularWishart": reference.abgw_log_density,
}
every_name = pytest.mark.parametrize("name", LOG_DENSITIES)


@every_name
@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_log_prob_is_that_of_the_paper(name: str, size: int, df: int) -> None:
    rng = np.random.default_rng(10 * size + df)
    parameters = reference.random_parameters(name, rng, size, df, (2,))
    t = reference.random_trapezoid(rng, 2, 2, size, min(df, size))
    g = reference.gram(t, *mixing(name, parameters, size, df))
    got = make(name, parameters, df).log_prob(g)
    tolerance = 1e-8 if name == "GeneralisedSingularWishart" else 1e-7
    for i, j in np.ndindex(2, 2):
        single = {key: value[j] for key, value in parameters.items()}
        expected = LOG_DENSITIES[name](g[i, j], df, **single)
        np.testing.assert_allclose(got[i, j], expected, rtol=tolerance, atol=tolerance)


MATRICES: dict[str, dict[str, Any]] = {
    "GeneralisedSingularWishart": {"scale_tril": np.eye(3)},
    "AGeneralisedSingularWishart": {"row_mixing": np.eye(3)},
    "ABGeneralisedSingularWishart": {"row_mixing": np.eye(3), "column_mixing_tril": np.eye(2)},
}
BARTLETT = reference.wishart_bartlett(3, 2)
BAD: dict[str, list[Any]] = {
    "df": [0, -1, 1.5, True],
    "scale_tril": [np.eye(3)[:2], np.diag([1.0, -1.0, 1.0])],
    "row_mixing": [np.eye(3)[:2], np.ones([3, 3]), np.full([3, 3], np.nan)],
    "column_mixing_tril": [np.eye(3), np.eye(2)[:1], np.diag([1.0, -1.0])],
    "concentration": [np.ones(3), np.array([1.0, -1.0])],
    "rate": [np.ones(1), np.zeros(2)],
    "loc": [np.zeros([3, 3]), np.zeros([2, 2])],
    "scale": [np.ones([4, 2]), np.zeros([3, 2]), -np.ones([3, 2])],
}


@pytest.mark.parametrize(
    ("name", "key", "bad"),
    [
        (name, key, bad)
        for name, matrices in MATRICES.items()
        for key in ("df", *matrices, *BARTLETT)
        for bad in BAD[key]
    ],
)
def test_bad_parameters_raise(name: str, key: str, bad: object) -> None:
    arguments = {"df": 2, **MATRICES[name], **BARTLETT, key: bad}
    with pytest.raises(ValueError, match=f"^{key} must"):
        getattr(distributions, name)(**arguments)


def test_the_message_says_which_rank_was_expected() -> None:
    message = r"shape \[..., 3, 3\] \(M = 3, R = min\(df, M\) = 3 for df = 7\), got shape \(3, 2\)"
    parameters = {**BARTLETT, "concentration": np.ones(3), "rate": np.ones(3)}
    with pytest.raises(ValueError, match=f"loc must have {message}"):
        GeneralisedSingularWishart(7, np.eye(3), **parameters)


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


@pytest.mark.parametrize(("size", "df"), [(1, 1), (4, 2), (3, 3), (3, 5)])
def test_generalised_wishart_at_its_parameters(size: int, df: int) -> None:
    scale_tril = reference.random_tril(np.random.default_rng(df), size, size)
    wishart = SingularWishart(df, scale_tril)
    parameters = reference.wishart_bartlett(size, df)
    generalised = GeneralisedSingularWishart(df, scale_tril, **parameters)
    sample, log_prob = wishart.experimental_sample_and_log_prob(4, seed=[1, 2])
    np.testing.assert_array_equal(generalised.sample(4, seed=[1, 2]), sample)
    np.testing.assert_allclose(generalised.log_prob(sample), log_prob, atol=1e-8)
    np.testing.assert_allclose(generalised.mean(), wishart.mean(), atol=1e-12)


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


@pytest.mark.parametrize("df", [0, -2, 0.5, True, "2", None, np.nan])
def test_bad_df_raises(df: object) -> None:
    with pytest.raises(ValueError, match="df must be"):
        SingularWishart(df, np.eye(2))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "scale_tril",
    [
        np.ones([2, 3]),
        np.ones(2),
        np.diag([1.0, 0.0]),
        np.diag([1.0, -1.0]),
        [[1.0, 0.0], [np.inf, 1.0]],
    ],
)
def test_bad_scale_tril_raises(scale_tril: object) -> None:
    with pytest.raises(ValueError, match="scale_tril must"):
        SingularWishart(2, scale_tril)
