from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from gpflow_dwp.distributions import AGeneralisedSingularWishart, GeneralisedSingularWishart


@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_log_prob_is_that_of_the_paper(size: int, df: int) -> None:
    rng, rank = np.random.default_rng(10 * size + df), min(df, size)
    row_mixing = reference.random_invertible(rng, 2, size, size)
    parameters = reference.random_bartlett(rng, size, df, (2,))
    t = reference.random_trapezoid(rng, 2, 2, size, rank)
    g = reference.gram(t, row_mixing, np.eye(rank))
    got = AGeneralisedSingularWishart(df, row_mixing, **parameters).log_prob(g)
    for i, j in np.ndindex(2, 2):
        single = {name: value[j] for name, value in parameters.items()}
        expected = reference.agw_log_density(g[i, j], df, row_mixing[j], **single)
        np.testing.assert_allclose(got[i, j], expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("size", "df"), [(1, 1), (4, 1), (4, 2), (3, 3), (3, 5)])
def test_a_triangular_row_mixing_makes_it_the_generalised_wishart(size: int, df: int) -> None:
    rng = np.random.default_rng(df)
    scale_tril = reference.random_tril(rng, 2, size, size)
    parameters = reference.random_bartlett(rng, size, df)
    narrow = GeneralisedSingularWishart(df, scale_tril, **parameters)
    wide = AGeneralisedSingularWishart(df, scale_tril, **parameters)
    g, log_prob = narrow.experimental_sample_and_log_prob(3, seed=[1, 2])
    np.testing.assert_array_equal(wide.sample(3, seed=[1, 2]), g)
    np.testing.assert_allclose(wide.log_prob(g), log_prob, atol=1e-7)
    np.testing.assert_allclose(wide.mean(), narrow.mean(), atol=1e-13)


@pytest.mark.parametrize(("size", "df"), [(1, 1), (4, 1), (4, 2), (3, 3), (3, 5)])
def test_closed_under_congruence(size: int, df: int) -> None:
    rng, rank = np.random.default_rng(df), min(df, size)
    row_mixing, outer = (reference.random_invertible(rng, size, size) for _ in range(2))
    parameters = reference.random_bartlett(rng, size, df)
    before = AGeneralisedSingularWishart(df, row_mixing, **parameters)
    after = AGeneralisedSingularWishart(df, outer @ row_mixing, **parameters)
    g = before.sample(seed=[3, 4]).numpy()
    pushed = outer @ g @ outer.T
    np.testing.assert_allclose(after.sample(seed=[3, 4]), pushed, atol=1e-10)

    def push(entries: np.ndarray) -> np.ndarray:
        full = reference.complete(entries, size, rank)
        return reference.free_entries(outer @ full @ outer.T, rank)

    log_det = reference.log_abs_det_jacobian(push, reference.free_entries(g, rank), step=1e-7)
    np.testing.assert_allclose(
        after.log_prob(pushed), before.log_prob(g).numpy() - log_det, rtol=1e-4, atol=1e-3
    )


def test_the_sign_of_the_determinant_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    row_mixing, parameters = (
        reference.random_invertible(rng, 3, 3),
        reference.random_bartlett(rng, 3, 2),
    )
    one, other = (
        AGeneralisedSingularWishart(2, sign * row_mixing, **parameters) for sign in (1.0, -1.0)
    )
    g = one.sample(seed=[1, 2])
    np.testing.assert_allclose(one.log_prob(g), other.log_prob(g))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    size=st.integers(1, 5),
    df=st.integers(1, 7),
    seed=st.integers(0, 2**31 - 1),
    log_scale=st.floats(-3.0, 3.0),
)
def test_log_prob_of_random_parameters(size: int, df: int, seed: int, log_scale: float) -> None:
    rng = np.random.default_rng(seed)
    parameters = reference.random_bartlett(rng, size, df)
    parameters["concentration"] += 1.0
    row_mixing = np.exp(log_scale) * reference.random_invertible(rng, size, size)
    distribution = AGeneralisedSingularWishart(df, row_mixing, **parameters)
    g, log_prob = distribution.experimental_sample_and_log_prob(seed=[seed, 0])
    expected = reference.agw_log_density(g.numpy(), df, row_mixing, **parameters)
    # Random factors have condition numbers up to 1e4, their outer products the square of it.
    np.testing.assert_allclose(log_prob, expected, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(distribution.log_prob(g), expected, rtol=1e-4, atol=1e-3)


GOOD = {"df": 2, "row_mixing": np.eye(3), **reference.wishart_bartlett(3, 2)}


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("df", 2.0),
        ("row_mixing", np.eye(3)[:2]),
        ("row_mixing", np.ones([3, 3])),
        ("row_mixing", np.full([3, 3], np.nan)),
        ("concentration", np.ones(3)),
        ("rate", np.zeros(2)),
        ("loc", np.zeros([2, 2])),
        ("scale", -np.ones([3, 2])),
    ],
)
def test_bad_parameters_raise(name: str, bad: object) -> None:
    with pytest.raises(ValueError, match=f"^{name} must"):
        AGeneralisedSingularWishart(**{**GOOD, name: bad})
