"""Kernels that add, of labels and counts."""

from __future__ import annotations

import numpy as np
import pytest
from gpflow.likelihoods import Bernoulli, Likelihood, Poisson, Softmax

from gpflow_dwp.selection.choice import Choice
from gpflow_dwp.selection.labels import VARIANCE, as_numbers, sum_of_numbers
from gpflow_dwp.selection.trainer import Trainer


def observed(kind: str) -> tuple[np.ndarray, np.ndarray, Likelihood]:
    """200 rows of three inputs, of whose functions observations are a sum, or a jump of two."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.7, 1.7, (200, 3))
    added = np.sin(5.0 * X[:, :1]) + np.cos(5.0 * X[:, 1:2]) - 0.5 * X[:, 2:]
    if kind == "joint labels":
        return X, (X[:, :1] * X[:, 1:2] > 0.0).astype(float), Bernoulli()
    if kind == "counts":
        return X, rng.poisson(np.exp(added)).astype(float), Poisson()
    if kind == "classes":
        return X, np.digitize(added, [-0.7, 0.7]).astype(float), Softmax(3)
    return X, (added + 0.1 * rng.standard_normal(added.shape) > 0.0).astype(float), Bernoulli()


@pytest.mark.parametrize(
    "kind", ["labels", "counts", pytest.param("classes", marks=pytest.mark.slow), "joint labels"]
)
def test_a_sum_is_the_start_where_observations_speak_for_it(kind: str) -> None:
    """Catches sums that are never found, or where inputs act jointly, and another scale."""
    X, Y, likelihood = observed(kind)
    trainer = Trainer(X, Y, None, np.zeros(1), Choice(likelihood=likelihood), 0, False, None)
    start = sum_of_numbers(trainer, likelihood)
    if kind == "joint labels":
        assert start is None
        return
    assert start is not None
    assert start.likelihood is likelihood
    assert start.name.startswith("Additive")
    variances = start.make_kernel()(X, full_cov=False)
    np.testing.assert_allclose(np.mean(variances), VARIANCE)


def test_missing_observations_are_left_out() -> None:
    """Catches ranks of missing values, and classes that are counted with them."""
    Y = np.array([[2.0], [np.nan], [0.0], [1.0], [1.0]])
    numbers = as_numbers(Y, Softmax(3))
    np.testing.assert_array_equal(np.isnan(numbers).all(axis=1), np.isnan(Y[:, 0]))
    np.testing.assert_array_equal(np.nanargmax(numbers[[0, 2, 3, 4]], axis=1), [2, 0, 1, 1])
    ranked = as_numbers(Y, Poisson())[:, 0]
    np.testing.assert_array_equal(np.isnan(ranked), np.isnan(Y[:, 0]))
    assert ranked[2] < ranked[3] == ranked[4] < ranked[0]
    np.testing.assert_allclose([np.nanmean(ranked), np.nanstd(ranked)], [0.0, 1.0], atol=1e-12)
