"""The bound, from what a batch returned."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from gpflow_dwp.objectives import (
    BoundTerms,
    evidence_lower_bound,
    importance_weighted_bound,
)


def test_terms() -> None:
    expectations = np.arange(6.0).reshape(2, 3)
    ratios = [np.array([-1.0, -3.0]), np.array([-5.0])]

    terms = evidence_lower_bound(
        tf.constant(expectations), [tf.constant(ratio) for ratio in ratios], num_data=30
    )

    # The mean over draws of 30 / 3 times the sum over the batch.
    np.testing.assert_allclose(terms.data, 10.0 * expectations.sum(axis=1).mean())
    np.testing.assert_allclose(terms.log_ratios, [-2.0, -5.0])
    # One value may stand for all draws.
    ratio = tf.constant([-2.0], tf.float64)
    terms = evidence_lower_bound(tf.zeros([4, 3], tf.float64), [ratio], num_data=3)
    np.testing.assert_allclose(terms.log_ratios, [-2.0])

    terms = BoundTerms(tf.constant(7.0, tf.float64), tf.constant([-1.0, -2.0], tf.float64))
    np.testing.assert_allclose(terms.weighted_sum(), 4.0)
    np.testing.assert_allclose(terms.weighted_sum(0.5), 5.5)
    np.testing.assert_allclose(terms.weighted_sum(tf.constant(0.0, tf.float32)), 7.0)


def test_importance_weighted_bound_is_that_of_numpy() -> None:
    rng = np.random.default_rng(0)
    expectations, local = rng.normal(size=(2, 6, 3)), rng.normal(size=(2, 6, 3))
    ratio = rng.normal(size=2)

    def bound(rows: slice) -> BoundTerms:
        return importance_weighted_bound(
            tf.constant(expectations[:, rows]),
            tf.constant(local[:, rows]),
            [tf.constant(ratio)],
            num_data=6,
        )

    means = np.log(np.mean(np.exp(expectations + local), axis=-1))
    np.testing.assert_allclose(bound(slice(None)).data, means.sum(axis=1).mean())
    np.testing.assert_allclose(bound(slice(None)).log_ratios, [ratio.mean()])
    # Minibatches average to the whole.
    batches = [bound(slice(start, start + 2)).data for start in (0, 2, 4)]
    np.testing.assert_allclose(np.mean(batches), means.sum(axis=1).mean())


def test_one_importance_sample_is_the_evidence_lower_bound() -> None:
    rng = np.random.default_rng(0)
    expectations, local = rng.normal(size=(2, 6, 1)), rng.normal(size=(2, 6, 1))

    weighted = importance_weighted_bound(
        tf.constant(expectations), tf.constant(local), [tf.zeros([1], tf.float64)], num_data=6
    )

    plain = evidence_lower_bound(
        tf.constant(expectations[..., 0]),
        [tf.constant(local.sum(axis=(1, 2)))],
        num_data=6,
    )
    np.testing.assert_allclose(weighted.weighted_sum(), plain.weighted_sum())
