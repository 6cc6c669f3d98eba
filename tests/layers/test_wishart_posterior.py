"""The mixed Bartlett factor."""

from __future__ import annotations

import model_reference
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.layers import WishartPosterior
from gpflow_dwp.random import as_seed

SIZES, FAMILIES = model_reference.SIZES, model_reference.FAMILIES


def make_posterior(size: int, df: int, family: str = "AB") -> WishartPosterior:
    posterior = WishartPosterior(df, size, family, np.random.default_rng(0))
    model_reference.randomise(posterior, seed=1)
    return posterior


def test_row_mixing_is_a_unit_lower_times_an_upper_triangle() -> None:
    posterior = make_posterior(3, 2)
    packed = posterior.packed_row_mixing.numpy()
    lower = np.array([[1.0, 0.0, 0.0], [packed[1, 0], 1.0, 0.0], [*packed[2, :2], 1.0]])
    diagonal = np.exp(np.diag(packed))
    upper = np.array(
        [
            [diagonal[0], packed[0, 1], packed[0, 2]],
            [0.0, diagonal[1], packed[1, 2]],
            [0.0, 0.0, diagonal[2]],
        ]
    )

    mixing = posterior.mixing(tf.float64)
    np.testing.assert_allclose(mixing.rows, lower @ upper, atol=1e-14)
    np.testing.assert_allclose(mixing.log_det_rows, np.linalg.slogdet(mixing.rows)[1], atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_mix_multiplies_by_both_matrices(family: str) -> None:
    posterior = make_posterior(4, 2, family)
    mixing = posterior.mixing(tf.float64)
    factor = np.random.default_rng(2).normal(size=(5, 4, 2))

    mixed = mixing.mix(tf.constant(factor))

    expected = mixing.rows.numpy() @ factor @ mixing.columns.numpy()
    np.testing.assert_allclose(mixed, expected, atol=1e-12)
    assert (posterior.packed_row_mixing is None) == (family == "GW")
    assert (posterior.column_mixing_tril is None) == (family != "AB")


@pytest.mark.parametrize(("size", "df"), SIZES)
def test_starting_values(size: int, df: int) -> None:
    posterior = WishartPosterior(df, size, "AB", np.random.default_rng(0))
    rank = min(size, df)

    np.testing.assert_allclose(posterior.concentration, (df - np.arange(rank)) / 2)
    np.testing.assert_allclose(posterior.rate, 0.5)
    np.testing.assert_allclose(posterior.scale, np.exp(-3.0))
    assert posterior.loc.shape == (size, rank)
    np.testing.assert_allclose(posterior.mixing(tf.float64).rows, np.eye(size))
    np.testing.assert_allclose(posterior.mixing(tf.float64).columns, np.eye(rank), atol=1e-12)


@pytest.mark.parametrize("with_left", [False, True])
@pytest.mark.parametrize(("size", "df"), SIZES)
def test_expected_log_ratio_is_the_monte_carlo_mean(size: int, df: int, with_left: bool) -> None:
    posterior = make_posterior(size, df)
    mixing, precision = posterior.mixing(tf.float64), None
    if with_left:
        left = np.random.default_rng(3).normal(size=(1, size, size))
        precision = tf.matmul(left, left, transpose_a=True)
    draws = posterior.bartlett(tf.float64).sample(20_000, seed=as_seed(0))

    expected = posterior.expected_log_ratio(draws, mixing, precision, stick_the_landing=False)

    sampled = posterior.sampled_log_ratio(draws, mixing, precision, stick_the_landing=False)
    model_reference.assert_same_mean(sampled.numpy()[:, None], expected.numpy(), k_sigma=4.5)
