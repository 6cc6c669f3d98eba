"""The bound, from what a batch returned."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from gpflow_dwp.objectives import BoundTerms, evidence_lower_bound


def test_terms() -> None:
    expectations = np.arange(6.0).reshape(2, 3)
    ratios = [np.array([-1.0, -3.0]), np.array([-5.0])]

    terms = evidence_lower_bound(
        tf.constant(expectations), [tf.constant(ratio) for ratio in ratios], num_data=30
    )

    # The mean over draws of 30 / 3 times the sum over the batch.
    np.testing.assert_allclose(terms.data, 10.0 * expectations.sum(axis=1).mean())
    np.testing.assert_allclose(terms.log_ratios, [-2.0, -5.0])


def test_log_ratios_may_have_one_value_for_all_draws() -> None:
    ratio = tf.constant([-2.0], tf.float64)

    terms = evidence_lower_bound(tf.zeros([4, 3], tf.float64), [ratio], num_data=3)

    np.testing.assert_allclose(terms.log_ratios, [-2.0])


def test_weighted_sum() -> None:
    terms = BoundTerms(tf.constant(7.0, tf.float64), tf.constant([-1.0, -2.0], tf.float64))

    np.testing.assert_allclose(terms.weighted_sum(), 4.0)
    np.testing.assert_allclose(terms.weighted_sum(0.5), 5.5)
    np.testing.assert_allclose(terms.weighted_sum(tf.constant(0.0, tf.float32)), 7.0)
