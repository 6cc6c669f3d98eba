from __future__ import annotations

import numpy as np
import pytest
import reference

from gpflow_dwp.distributions import (
    ABGeneralisedSingularWishart,
    AGeneralisedSingularWishart,
    SingularWishart,
)


@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_log_prob_is_that_of_the_paper(size: int, df: int) -> None:
    rng, rank = np.random.default_rng(10 * size + df), min(df, size)
    row_mixing = reference.random_invertible(rng, 2, size, size)
    column_mixing_tril = reference.random_tril(rng, 2, rank, rank)
    parameters = reference.random_bartlett(rng, size, df, (2,))
    t = reference.random_trapezoid(rng, 2, 2, size, rank)
    g = reference.gram(t, row_mixing, column_mixing_tril)
    got = ABGeneralisedSingularWishart(df, row_mixing, column_mixing_tril, **parameters).log_prob(g)
    for i, j in np.ndindex(2, 2):
        single = {name: value[j] for name, value in parameters.items()}
        expected = reference.abgw_log_density(
            g[i, j], df, row_mixing[j], column_mixing_tril[j], **single
        )
        np.testing.assert_allclose(got[i, j], expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("size", "df"), [(1, 1), (4, 1), (4, 2), (3, 3), (3, 5)])
def test_without_column_mixing_it_is_the_a_generalised_wishart(size: int, df: int) -> None:
    rng, rank = np.random.default_rng(df), min(df, size)
    row_mixing = reference.random_invertible(rng, 2, size, size)
    parameters = reference.random_bartlett(rng, size, df)
    narrow = AGeneralisedSingularWishart(df, row_mixing, **parameters)
    wide = ABGeneralisedSingularWishart(df, row_mixing, np.eye(rank), **parameters)
    g, log_prob = narrow.experimental_sample_and_log_prob(3, seed=[1, 2])
    np.testing.assert_array_equal(wide.sample(3, seed=[1, 2]), g)
    np.testing.assert_allclose(wide.log_prob(g), narrow.log_prob(g))
    np.testing.assert_allclose(
        wide.experimental_sample_and_log_prob(3, seed=[1, 2])[1], log_prob, rtol=1e-12
    )
    np.testing.assert_allclose(wide.mean(), narrow.mean())


def test_a_diagonal_column_mixing_rescales_the_factor() -> None:
    rng = np.random.default_rng(1)
    row_mixing, b = reference.random_invertible(rng, 4, 4), np.array([0.5, 2.0])
    parameters = reference.random_bartlett(rng, 4, 2)
    mixed = ABGeneralisedSingularWishart(2, row_mixing, np.diag(b), **parameters)
    parameters["rate"] = parameters["rate"] / b**2
    parameters["loc"] = parameters["loc"] * b
    parameters["scale"] = parameters["scale"] * b
    rescaled = AGeneralisedSingularWishart(2, row_mixing, **parameters)
    g = mixed.sample(3, seed=[1, 2])
    np.testing.assert_allclose(rescaled.sample(3, seed=[1, 2]), g)
    np.testing.assert_allclose(rescaled.log_prob(g), mixed.log_prob(g), atol=1e-8)
    np.testing.assert_allclose(rescaled.mean(), mixed.mean())


@pytest.mark.parametrize(("size", "df"), [(1, 2), (3, 1), (3, 2), (2, 2), (2, 4)])
def test_expected_density_ratio_is_one(size: int, df: int) -> None:
    # E_q[p/q] = 1, within 4.5 sigma, for p a Wishart and q with heavier tails.
    rng, rank = np.random.default_rng(df), min(df, size)
    p = SingularWishart(df, 0.8 * np.eye(size))
    parameters = reference.wishart_bartlett(size, df)
    parameters["rate"] = np.full(rank, 0.4)
    parameters["loc"] = 0.2 * rng.normal(size=(size, rank))
    parameters["scale"] = np.full((size, rank), 1.1)
    q = ABGeneralisedSingularWishart(
        df,
        np.eye(size) + 0.1 * rng.normal(size=(size, size)),
        np.eye(rank) + 0.2 * np.tril(rng.normal(size=(rank, rank)), -1),
        **parameters,
    )
    g, log_q = q.experimental_sample_and_log_prob(40_000, seed=[1, 2])
    ratio = np.exp(p.log_prob(g) - log_q)
    error = np.std(ratio) / np.sqrt(len(ratio))
    assert error < 0.02
    assert abs(np.mean(ratio) - 1.0) < 4.5 * error


GOOD = {
    "df": 2,
    "row_mixing": np.eye(3),
    "column_mixing_tril": np.eye(2),
    **reference.wishart_bartlett(3, 2),
}


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("df", -1),
        ("row_mixing", np.ones([3, 3])),
        ("column_mixing_tril", np.eye(3)),
        ("column_mixing_tril", np.eye(2)[:1]),
        ("column_mixing_tril", np.diag([1.0, -1.0])),
        ("concentration", np.ones(3)),
        ("rate", np.zeros(2)),
        ("loc", np.zeros([2, 2])),
        ("scale", -np.ones([3, 2])),
    ],
)
def test_bad_parameters_raise(name: str, bad: object) -> None:
    with pytest.raises(ValueError, match=f"^{name} must"):
        ABGeneralisedSingularWishart(**{**GOOD, name: bad})


def test_batch_shapes_that_do_not_broadcast_raise() -> None:
    with pytest.raises(ValueError, match="column_mixing_tril must have a batch shape"):
        ABGeneralisedSingularWishart(
            **{
                **GOOD,
                "row_mixing": np.stack(3 * [np.eye(3)]),
                "column_mixing_tril": np.stack(2 * [np.eye(2)]),
            }
        )
