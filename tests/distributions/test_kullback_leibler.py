from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
import pytest
import reference
import tensorflow_probability as tfp
from distribution_cases import GRAM_NAMES, SEED, random_tril
from model_reference import assert_same_mean
from scipy import special, stats

import gpflow_dwp
from gpflow_dwp import distributions
from gpflow_dwp.distributions import GeneralisedSingularWishart, InverseWishart, SingularWishart
from gpflow_dwp.distributions.kullback_leibler import wishart_log_normaliser


def assert_is_the_expected_log_ratio(q: Any, p: Any) -> None:
    """The divergence is the mean of the log-ratio of the densities, within 5 sigma."""
    value, log_q = q.experimental_sample_and_log_prob(20_000, seed=SEED)
    ratios, divergence = (log_q - p.log_prob(value)).numpy(), q.kl_divergence(p).numpy()
    assert divergence.shape == ratios.shape[1:]
    assert_same_mean(ratios, divergence, 5.0)
    assert np.all(np.std(ratios, axis=0) / np.sqrt(len(ratios)) < 0.05 * divergence)


@pytest.mark.parametrize("name", GRAM_NAMES)
@pytest.mark.parametrize(("size", "df"), [(4, 2), (3, 5)])
def test_divergence_to_a_wishart_is_the_expected_log_ratio(name: str, size: int, df: int) -> None:
    parameters = reference.random_parameters(name, np.random.default_rng(df), size, df, (2,))
    q = getattr(distributions, name)(df, **parameters)
    assert_is_the_expected_log_ratio(q, SingularWishart(df, random_tril(size)))


def wishart_divergence(
    q_df: int, q_scale: np.ndarray, p_df: int, p_scale: np.ndarray
) -> np.ndarray:
    """The textbook's, for regular Wisharts."""
    size = len(q_scale)
    ratio = np.linalg.solve(p_scale, q_scale)
    digamma = sum(special.digamma(0.5 * (q_df - j)) for j in range(size))
    return (
        0.5 * (q_df - p_df) * digamma
        + special.multigammaln(0.5 * p_df, size)
        - special.multigammaln(0.5 * q_df, size)
        - 0.5 * p_df * np.linalg.slogdet(ratio)[1]
        + 0.5 * q_df * (np.trace(ratio) - size)
    )


def test_the_distributions_come_with_their_divergences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches those that are registered only where layers are imported."""
    monkeypatch.setattr(gpflow_dwp, "distributions", distributions)
    for name in [name for name in sys.modules if name.startswith(distributions.__name__)]:
        monkeypatch.delitem(sys.modules, name)
    wishart = importlib.import_module(distributions.__name__).SingularWishart(2, np.eye(3))

    np.testing.assert_allclose(wishart.kl_divergence(wishart), 0.0, atol=1e-12)


def test_divergence_between_wisharts() -> None:
    for size, df in ((1, 1), (3, 4)):
        constant = stats.wishart(df, np.eye(size)).logpdf(np.eye(size)) + 0.5 * size
        np.testing.assert_allclose(wishart_log_normaliser(df, size), constant)
    assert isinstance(wishart_log_normaliser(2, 5), float)
    q_tril, p_tril = random_tril(3), random_tril(3, seed=1)
    q_scale, p_scale = q_tril @ q_tril.T, p_tril @ p_tril.T
    for q_df, p_df in ((3, 3), (5, 5), (3, 7), (6, 4)):
        got = SingularWishart(q_df, q_tril).kl_divergence(SingularWishart(p_df, p_tril))
        expected = wishart_divergence(q_df, q_scale, p_df, p_scale)
        np.testing.assert_allclose(got, expected, rtol=1e-10)
    # Below full rank it is that of ν Gaussian columns, as G says all that the ratio needs.
    normal = tfp.distributions.MultivariateNormalTriL
    columns = normal(np.zeros(3), q_tril).kl_divergence(normal(np.zeros(3), p_tril))
    for df in (1, 2):
        q = SingularWishart(df, q_tril)
        np.testing.assert_allclose(q.kl_divergence(SingularWishart(df, p_tril)), df * columns)
        np.testing.assert_allclose(q.kl_divergence(q), 0.0, atol=1e-12)
        general = GeneralisedSingularWishart(df, q_tril, **reference.wishart_bartlett(3, df))
        np.testing.assert_allclose(general.kl_divergence(q), 0.0, atol=1e-12)


def test_divergence_between_inverse_wisharts() -> None:
    q = InverseWishart([7.3, 8.0], random_tril(3))
    p = InverseWishart([4.1, 9.0], random_tril(3, seed=1))
    assert_is_the_expected_log_ratio(q, p)
    np.testing.assert_allclose(q.kl_divergence(q), 0.0, atol=1e-12)


def test_divergences_that_cannot_be_are_refused() -> None:
    wishart = SingularWishart(2, np.eye(3))
    with pytest.raises(ValueError, match="is infinite: df must be equal.* got 2 and 4 for M = 3"):
        wishart.kl_divergence(SingularWishart(4, np.eye(3)))
    with pytest.raises(ValueError, match=r"one event shape, got \(3, 3\) and \(2, 2\)"):
        wishart.kl_divergence(SingularWishart(2, np.eye(2)))
