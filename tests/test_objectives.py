"""The bound, from what a batch returned."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from scipy import special, stats

from gpflow_dwp.latent_variable_deep_gp import LocalInducingGPLayer
from gpflow_dwp.objectives import BoundTerms, evidence_lower_bound, importance_weighted_bound


def test_terms() -> None:
    expectations = np.arange(6.0).reshape(2, 3)
    ratios = [tf.constant(ratio, tf.float64) for ratio in ([-1.0, -3.0], [-5.0])]

    terms = evidence_lower_bound(tf.constant(expectations), ratios, num_data=30)

    # The mean over draws of 30 / 3 times the sum over the batch; one value may stand for all draws.
    np.testing.assert_allclose(terms.data, 10.0 * expectations.sum(axis=1).mean())
    np.testing.assert_allclose(terms.log_ratios, [-2.0, -5.0])

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


def test_bounds_are_ordered_below_the_evidence() -> None:
    """Of y ~ N(f(w), 0.3), f a priori linear, whose evidence is an integral over w: K draws of w
    from its prior give more than one, and with a drawn f more than with one integrated inside."""
    Y, noise, K, count = np.array([[1.0]]), 0.3, 10, 40_000
    layer = LocalInducingGPLayer(gpflow.kernels.Linear(), [[1.0]], 1, jitter=1e-10)
    layer.q_mu.assign([[0.7]])
    layer.q_sqrt.assign([[[0.5]]])
    nodes, masses = special.roots_hermitenorm(60)
    densities = stats.norm.pdf(Y[0, 0], scale=np.sqrt(nodes**2 + noise))
    evidence = np.log(masses @ densities / masses.sum())

    rng = np.random.default_rng(3)
    w = tf.constant(rng.normal(size=(count, 1, K, 1)))
    mean, variance = (part[..., 0] for part in layer.predict(w, full_cov=False))
    functions = layer.sample(w, tf.constant(rng.normal(size=(count, 1, K, 1))), full_cov=True)
    local, likelihood = tf.zeros([1, 1, 1], tf.float64), gpflow.likelihoods.Gaussian(noise)
    empty = np.zeros((1, 1))

    def bound(expectations: tf.Tensor) -> float:
        terms = importance_weighted_bound(expectations, local, [layer.log_ratio()], num_data=1)
        return float(terms.weighted_sum())

    expected = likelihood.variational_expectations(
        empty, tf.reshape(mean, [-1, 1]), tf.reshape(variance, [-1, 1]), Y
    )
    expected = tf.reshape(expected, mean.shape)
    drawn = tf.constant(stats.norm.logpdf(Y[0, 0], functions[..., 0], np.sqrt(noise)))
    bounds = [bound(expected[..., :1]), bound(expected), bound(drawn), evidence]
    assert np.all(np.diff(bounds) > 0.02), bounds
