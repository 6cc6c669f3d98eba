from __future__ import annotations

import numpy as np
import pytest
import reference

from gpflow_dwp.distributions import GeneralisedSingularWishart, SingularWishart


@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_log_prob_is_that_of_the_paper(size: int, df: int) -> None:
    rng, rank = np.random.default_rng(10 * size + df), min(df, size)
    scale_tril = reference.random_tril(rng, 2, size, size)
    parameters = reference.random_bartlett(rng, size, df, (2,))
    t = reference.random_trapezoid(rng, 2, 2, size, rank)
    g = reference.gram(t, scale_tril, np.eye(rank))
    got = GeneralisedSingularWishart(df, scale_tril, **parameters).log_prob(g)
    for i, j in np.ndindex(2, 2):
        single = {name: value[j] for name, value in parameters.items()}
        expected = reference.gw_log_density(g[i, j], df, scale_tril[j], **single)
        np.testing.assert_allclose(got[i, j], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("size", "df"), [(3, 2), (3, 5)])
def test_expected_density_ratio_is_one(size: int, df: int) -> None:
    # E_q[p/q] = 1, within 4.5 sigma, for p a Wishart and q with heavier tails.
    rng = np.random.default_rng(df)
    p = SingularWishart(df, 0.8 * np.eye(size))
    parameters = reference.wishart_bartlett(size, df)
    parameters["rate"] = np.full(min(df, size), 0.4)
    parameters["loc"] = 0.2 * rng.normal(size=(size, min(df, size)))
    parameters["scale"] = np.full((size, min(df, size)), 1.1)
    q = GeneralisedSingularWishart(
        df, reference.random_tril(rng, size, size) * 0.2 + 0.75 * np.eye(size), **parameters
    )
    g, log_q = q.experimental_sample_and_log_prob(40_000, seed=[1, 2])
    ratio = np.exp(p.log_prob(g) - log_q)
    error = np.std(ratio) / np.sqrt(len(ratio))
    assert error < 0.02
    assert abs(np.mean(ratio) - 1.0) < 4.5 * error


GOOD = {"df": 2, "scale_tril": np.eye(3), **reference.wishart_bartlett(3, 2)}


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("df", 0),
        ("df", True),
        ("scale_tril", np.eye(3)[:2]),
        ("scale_tril", np.diag([1.0, -1.0, 1.0])),
        ("concentration", np.ones(3)),
        ("concentration", np.array([1.0, -1.0])),
        ("rate", np.ones(1)),
        ("loc", np.zeros([3, 3])),
        ("scale", np.ones([4, 2])),
        ("scale", np.zeros([3, 2])),
    ],
)
def test_bad_parameters_raise(name: str, bad: object) -> None:
    with pytest.raises(ValueError, match=f"^{name} must"):
        GeneralisedSingularWishart(**{**GOOD, name: bad})


def test_the_message_says_which_rank_was_expected() -> None:
    message = r"shape \[..., 3, 3\] \(M = 3, R = min\(df, M\) = 3 for df = 7\), got shape \(3, 2\)"
    bad = {**GOOD, "df": 7, "concentration": np.ones(3), "rate": np.ones(3)}
    with pytest.raises(ValueError, match=f"loc must have {message}"):
        GeneralisedSingularWishart(**bad)
