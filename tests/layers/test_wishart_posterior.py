"""The mixed Bartlett factor."""

from __future__ import annotations

import model_reference
import numpy as np
import tensorflow as tf

from gpflow_dwp.layers import WishartPosterior

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
