"""Class probabilities from a mixture of normals, against quadrature."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from scipy.special import expit

from gpflow_dwp.estimator._softmax import mean_softmax


class Posterior:
    """S normals at every point, whose means and variances are functions of the point."""

    num_samples = 40

    def predict_f_components(self, X: np.ndarray) -> tuple[tf.Tensor, tf.Tensor]:
        draws = np.linspace(-1.0, 1.0, self.num_samples)[:, None, None]
        means = draws * X[None, :, :1] + np.array([0.3, -0.5])
        variances = np.broadcast_to(np.exp(X[None, :, :1]) * np.array([1.0, 0.5]), means.shape)
        return tf.constant(means), tf.constant(variances)


X = np.array([[-1.5], [0.0], [0.4], [1.0]])


def test_two_classes_are_a_logistic_of_one_normal() -> None:
    # softmax(f)_1 is a logistic of f_1 - f_0, which is normal: a one-dimensional integral.
    means, variances = (moment.numpy() for moment in Posterior().predict_f_components(X))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    difference = means[..., 1] - means[..., 0]
    deviation = np.sqrt(variances.sum(axis=-1))
    values = expit(difference[..., None] + deviation[..., None] * nodes)
    expected = (values @ weights / weights.sum()).mean(axis=0)

    probabilities = mean_softmax(Posterior(), X, 2, seed=0)

    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    # 1,280 draws of numbers in [0, 1], in pairs of opposites: four standard errors are below 0.03.
    np.testing.assert_allclose(probabilities[:, 1], expected, atol=0.03)


def test_a_point_does_not_depend_on_its_batch(monkeypatch) -> None:
    everything = mean_softmax(Posterior(), X, 2, seed=0)

    np.testing.assert_array_equal(mean_softmax(Posterior(), X[2:], 2, seed=0), everything[2:])
    monkeypatch.setattr("gpflow_dwp.estimator._softmax._MAX_NUMBERS", 1)
    np.testing.assert_array_equal(mean_softmax(Posterior(), X, 2, seed=0), everything)
    assert not np.array_equal(mean_softmax(Posterior(), X, 2, seed=1), everything)
