"""Predictions in raw units, of arrays and in graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from model_reference import tiny_model, toy_data

from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import RawUnits

X, Y = toy_data(num_outputs=2)
INPUTS = Standardiser([3.0, -40.0], [0.2, 7.0])
OUTPUTS = Standardiser([100.0, -5.0], [20.0, 0.3])
RAW_X, RAW_Y = INPUTS.inverse_transform(X), OUTPUTS.inverse_transform(Y)
X = INPUTS.transform(RAW_X)  # rounded: the noise of hidden layers is a function of all digits


def test_predictions_are_the_models_own_in_other_units() -> None:
    """Catches a mean without the offset, a variance with it, and a density per standard unit."""
    model = tiny_model(2, data=(X, Y), likelihood="warped")
    model.likelihood.warp.skewness.assign([0.5, -0.4])
    units, posterior = RawUnits(model, INPUTS, OUTPUTS), model.posterior(3, seed=1)

    mean, variance = units.moments(posterior, RAW_X)

    own = posterior.predict_y(X)
    np.testing.assert_allclose(mean, OUTPUTS.mean + OUTPUTS.scale * own[0], rtol=1e-9)
    np.testing.assert_allclose(variance, OUTPUTS.scale**2 * own[1], rtol=1e-9)
    density = posterior.predict_log_density((X, Y)) - np.log(OUTPUTS.scale).sum()
    np.testing.assert_allclose(units.log_density(posterior, RAW_X, RAW_Y), density, rtol=1e-9)
    samples = OUTPUTS.mean + OUTPUTS.scale * posterior.sample_y(X)
    np.testing.assert_allclose(units.sample(posterior, RAW_X), samples, rtol=1e-9)
    distribution = units.distribution(posterior, RAW_X)
    np.testing.assert_allclose(distribution.mean(), mean, rtol=1e-8)
    np.testing.assert_allclose(distribution.variance(), variance, rtol=1e-8)


def test_tensors_and_graphs_give_what_arrays_give() -> None:
    """Catches a result that stays a tensor, or is not brought to raw units, on one of the ways."""
    model = tiny_model(1, data=(X, Y), likelihood="warped")
    units, posterior = RawUnits(model, INPUTS, OUTPUTS), model.posterior(3, seed=1)
    names = ("moments", "function_moments", "sample", "sample_functions")

    def predict(X: Any, Y: Any) -> list[Any]:
        found = [getattr(units, name)(posterior, X) for name in names]
        return [*found, units.log_density(posterior, X, Y)]

    of_arrays = predict(RAW_X, RAW_Y)
    assert all(isinstance(part, np.ndarray) for part in tf.nest.flatten(of_arrays))
    rows = tf.constant(RAW_X), tf.constant(RAW_Y)
    for of_tensors in (predict(*rows), tf.function(predict, autograph=False)(*rows)):
        for got, expected in zip(*map(tf.nest.flatten, (of_tensors, of_arrays)), strict=True):
            assert tf.is_tensor(got)
            np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_single_precision_loses_nothing_to_a_mean_far_from_zero() -> None:
    """Would catch a mean that is rounded first, here by half of a standard deviation."""
    far = Standardiser([1e7 + 0.5, 2.0], [1.0, 3.0])
    units, rows = RawUnits(tiny_model(1), far), np.float32([[1e7, 1.0], [1e7 + 2.0, 7.0]])

    moved = units.to_model(tf.constant(rows))

    assert moved.dtype == tf.float32
    np.testing.assert_array_equal(moved, np.float32(far.transform(rows)))
