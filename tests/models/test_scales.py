"""Data in other units than models start in are warned of, and no others are."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.data import Standardiser
from gpflow_dwp.exceptions import ScaleWarning
from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.models import build_deep_gaussian_process

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(50, 3)), RNG.normal(size=(50, 1))
BUILDERS = (build_deep_wishart_process, build_deep_gaussian_process, build_latent_variable_deep_gp)


@pytest.mark.parametrize("build", BUILDERS)
def test_the_column_is_named_and_the_remedy_works(build: Any) -> None:
    """Catches a builder that says nothing, and a warning that names no column or other code."""
    raw = X * [1.0, 500.0, 1e-3] + [0.0, 2_000.0, 0.0]
    message = r"X has a column 2 of mean .*e\+03 and standard deviation .*, and 1 more"

    with pytest.warns(ScaleWarning, match=message) as record:
        build((raw, Y))
    assert len(record) == 1 and Path(record[0].filename) == Path(__file__)
    with pytest.warns(ScaleWarning, match=r"Y has a column 1 .*Standardiser\.fit\(Y\)"):
        build((X, 100.0 * Y + np.where(X[:, :1] > 1.0, np.nan, 0.0)))
    build((Standardiser.fit(raw).transform(raw), Y))


def test_what_is_as_it_should_be() -> None:
    """Catches warnings of constants, rare categories, edges of images, and counts as targets."""
    constant, rare = np.full(50, 1e6), np.eye(50)[0]
    pixel = 0.1 * rare - 1.0
    counts = np.arange(50.0)[:, None] * 1e3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        columns = [constant, rare, pixel, 10.0 * X[:, 0]]
        build_deep_wishart_process((np.stack(columns, 1), 0.1 * Y))
        build_deep_wishart_process((X, counts), likelihood=gpflow.likelihoods.Poisson())
