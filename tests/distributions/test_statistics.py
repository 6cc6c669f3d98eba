"""Variance, covariance, mode and entropy of what is made of a generalised Bartlett factor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
import tensorflow as tf
import tensorflow_probability as tfp
from distribution_cases import GRAM_NAMES, SEED
from scipy import stats

from gpflow_dwp import distributions
from gpflow_dwp.distributions import (
    AGeneralisedSingularWishart,
    GeneralisedBartlett,
    GeneralisedSingularWishart,
    SingularWishart,
)

every_gram = pytest.mark.parametrize("name", GRAM_NAMES)


def make(name: str, size: int, df: int) -> tuple[Any, dict[str, np.ndarray]]:
    parameters = reference.random_parameters(name, np.random.default_rng(df), size, df)
    if "concentration" in parameters:
        # Large enough for a mode.
        parameters["concentration"] += 0.5 * size
    return getattr(distributions, name)(df, **parameters), parameters


def wishart_pair(size: int, df: int) -> tuple[SingularWishart, Any]:
    scale_tril = reference.random_tril(np.random.default_rng(df), size, size)
    ours = SingularWishart(df, scale_tril)
    return ours, stats.wishart(df, scale_tril @ scale_tril.T)


@pytest.mark.parametrize(("size", "df"), [(1, 3), (3, 4), (3, 6)])
def test_regular_wishart_is_that_of_scipy_and_tfp(size: int, df: int) -> None:
    ours, theirs = wishart_pair(size, df)
    tfps = tfp.distributions.WishartTriL(tf.constant(float(df), tf.float64), ours.scale_tril)
    np.testing.assert_allclose(ours.variance(), theirs.var())
    np.testing.assert_allclose(ours.mode(), theirs.mode(), atol=1e-12)
    np.testing.assert_allclose(ours.entropy(), theirs.entropy())
    for statistic in ("variance", "stddev", "entropy"):
        np.testing.assert_allclose(getattr(ours, statistic)(), getattr(tfps, statistic)())
    np.testing.assert_allclose(ours.mode(), tfps.mode(), atol=1e-12)


@every_gram
@pytest.mark.parametrize(("size", "df"), [(3, 1), (3, 2), (2, 3)])
def test_variance_is_that_of_all_products_of_four_entries(name: str, size: int, df: int) -> None:
    distribution, parameters = make(name, size, df)
    factor = {**reference.wishart_bartlett(size, df), **parameters}
    mixing = parameters.get("row_mixing", parameters.get("scale_tril"))
    columns = parameters.get("column_mixing_tril", np.eye(min(size, df)))
    expected = reference.gram_covariance(factor, mixing, columns)
    np.testing.assert_allclose(
        distribution.variance(), np.einsum("ijij->ij", expected), rtol=1e-9, atol=1e-9
    )
    if name == "SingularWishart":
        covariance = np.reshape(expected, [size**2, size**2])
        np.testing.assert_allclose(distribution.covariance(), covariance, atol=1e-9)
        general = GeneralisedSingularWishart(df, mixing, **reference.wishart_bartlett(size, df))
        np.testing.assert_allclose(general.variance(), distribution.variance(), rtol=1e-12)


@pytest.mark.parametrize("concentration", [0.3, 2.0, 50.0, 5000.0])
def test_variance_without_cancellation(concentration: float) -> None:
    # G = T² of one row is a Gamma variable.
    one = np.ones([1, 1])
    distribution = GeneralisedSingularWishart(1, one, [concentration], [2.0], one, one)
    np.testing.assert_allclose(distribution.variance(), [[concentration / 4.0]], rtol=1e-7)


@pytest.mark.parametrize(
    ("name", "size", "df"),
    [
        ("SingularWishart", 4, 2),
        ("GeneralisedSingularWishart", 4, 2),
        ("GeneralisedSingularWishart", 3, 3),
        ("AGeneralisedSingularWishart", 3, 3),
        ("ABGeneralisedSingularWishart", 3, 5),
    ],
)
def test_entropy_is_the_expected_log_density(name: str, size: int, df: int) -> None:
    # Within 5 sigma.
    distribution, _ = make(name, size, df)
    _, log_prob = distribution.experimental_sample_and_log_prob(20_000, seed=SEED)
    error = np.std(log_prob) / np.sqrt(len(log_prob))
    assert abs(np.mean(-log_prob) - distribution.entropy()) < 5.0 * error


@pytest.mark.parametrize(
    ("name", "size", "df"),
    [
        ("GeneralisedSingularWishart", 4, 2),
        ("SingularWishart", 3, 5),
        ("AGeneralisedSingularWishart", 3, 3),
        ("ABGeneralisedSingularWishart", 3, 5),
    ],
)
def test_mode_has_the_highest_density(name: str, size: int, df: int) -> None:
    # Among the neighbours of the same rank, made by moving the factor of the mode.
    distribution, _ = make(name, size, df)
    mode = distribution.mode()
    factor = reference.rank_cholesky(mode.numpy(), distribution.rank)
    for step in (1e-3, 1e-2):
        noise = step * np.random.default_rng(0).normal(size=(50, size, distribution.rank))
        moved = factor + np.tri(size, distribution.rank) * noise
        others = tf.constant(moved @ np.swapaxes(moved, -1, -2))
        assert np.all(distribution.log_prob(others) < distribution.log_prob(mode))


def test_mode_and_covariance_of_the_factor() -> None:
    parameters = reference.random_bartlett(np.random.default_rng(0), 4, 2, (3,))
    distribution = GeneralisedBartlett(**parameters)
    mode = distribution.mode().numpy()
    below = np.tri(4, 2, -1, dtype=bool)
    np.testing.assert_array_equal(mode[:, below], parameters["loc"][:, below])
    law = stats.gengamma(parameters["concentration"], 2.0, scale=parameters["rate"] ** -0.5)
    diagonal = np.diagonal(mode, axis1=-2, axis2=-1)
    assert np.all(law.pdf(diagonal) > law.pdf(0.999 * diagonal))
    assert np.all(law.pdf(diagonal) > law.pdf(1.001 * diagonal))
    expected = np.stack([np.diag(v) for v in np.reshape(distribution.variance(), [3, 8])])
    np.testing.assert_array_equal(distribution.covariance(), expected)


def test_modes_that_do_not_exist_are_nan_or_an_error() -> None:
    scale_tril = np.eye(3)
    np.testing.assert_array_equal(SingularWishart(4, scale_tril).mode(), np.zeros([3, 3]))
    for df in (2, 3):
        assert np.all(np.isnan(SingularWishart(df, scale_tril).mode()))
    factor = ([0.7, 0.4], np.ones(2), np.zeros([2, 2]), np.ones([2, 2]))
    assert np.all(np.isnan(GeneralisedBartlett(*factor).mode()))
    with pytest.raises(tf.errors.InvalidArgumentError, match="The mode is defined where 2 α_j"):
        SingularWishart(3, scale_tril, allow_nan_stats=False).mode()
    with pytest.raises(tf.errors.InvalidArgumentError, match="defined where concentration >="):
        GeneralisedBartlett(*factor, allow_nan_stats=False).mode()


@pytest.mark.parametrize("statistic", ["mode", "entropy"])
def test_statistics_without_a_closed_form_are_refused(statistic: str) -> None:
    parameters = reference.wishart_bartlett(3, 2)
    distribution = AGeneralisedSingularWishart(2, np.eye(3), **parameters)
    message = f"The {statistic} of AGeneralised.* for df >= M only, got df = 2, M = 3"
    with pytest.raises(NotImplementedError, match=message):
        getattr(distribution, statistic)()
