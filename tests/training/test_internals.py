"""Training without the private parts of TensorFlow and TensorFlow Probability that it knows."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from model_reference import tiny_model, toy_data
from tensorflow.python.framework.ops import gradient_registry

from gpflow_dwp import fit
from gpflow_dwp.training import _internals
from gpflow_dwp.training._kept import forget_kept


def test_training_is_the_same_where_they_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a release that renames them: only speed and memory may suffer."""
    X, Y = toy_data()
    batches = tf.data.Dataset.from_tensor_slices((X, Y)).batch(len(X))

    def trained() -> list[np.ndarray]:
        forget_kept()
        model = tiny_model(1)
        fit(model, batches, 2, progress=False)
        return [variable.numpy() for variable in model.variables]

    expected = trained()
    with monkeypatch.context() as patch:
        patch.delattr(gradient_registry, "_registry")
        patch.delattr(tfp.bijectors.Bijector, "_cache")
        _internals.forget_gradient("CustomGradient-1")
        _internals.forget_transformed()

    assert _internals.iterator_resources(object()) == []
    assert _internals.function_of(object()) is None
    _internals.let_go_of_graphs(object())
    monkeypatch.setattr("gpflow_dwp.training._batches.iterator_resources", lambda iterator: [])
    monkeypatch.setattr("gpflow_dwp.training._kept.function_of", lambda traced: None)
    for value, found in zip(expected, trained(), strict=True):
        np.testing.assert_array_equal(found, value)
