"""GW, A-GW and AB-GW beside the papers' densities, and beside each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from distribution_cases import make, mixing

from gpflow_dwp import distributions
from gpflow_dwp.distributions import (
    GeneralisedSingularWishart,
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
