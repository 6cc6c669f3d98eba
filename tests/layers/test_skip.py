"""A connection past a layer: the sum of two Gram matrices."""

from __future__ import annotations

import gpflow.kernels as gk
import numpy as np
import pytest
import tensorflow as tf
from model_reference import toy_data

from gpflow_dwp.layers import GramLayer, SkipLayer, WishartLayer
from gpflow_dwp.layers.propagation import sample_inducing_path
from gpflow_dwp.models import (
    DeepKernelProcess,
    build_deep_wishart_process,
    model_from_bytes,
    model_to_bytes,
)
from gpflow_dwp.random import as_seed
from gpflow_dwp.training import fit

X, Y = toy_data(12)
M = 5


def make_model(layer: GramLayer) -> DeepKernelProcess:
    built = build_deep_wishart_process((X, Y), 2, num_inducing=M, output="pseudo_targets", seed=0)
    return DeepKernelProcess(
        [SkipLayer(layer), built.output_layer], built.likelihood, X[:M], len(X)
    )


def test_gram_matrices_are_those_of_the_layer_and_of_its_kernel() -> None:
    """Against the layer alone, at inducing points and, drawn jointly with them, at others."""
    layer = WishartLayer(gk.SquaredExponential(), 3, M, seed=0)
    model, points, seed = make_model(layer), tf.constant(X[:M]), as_seed(3)
    plain = DeepKernelProcess([layer, model.output_layer], model.likelihood, X[:M], len(X))
    posteriors = [each.posterior(4, seed=seed) for each in (model, plain)]

    for inputs in (None, X[:8]):
        (gram,), (own,) = (each.gram_matrices(inputs) for each in posteriors)
        kernel = layer.kernel(X[:M] if inputs is None else inputs)
        np.testing.assert_allclose(gram, own + kernel, atol=1e-10)
    path = sample_inducing_path([model.layers[0]], model.output_layer, points, 4, seed)
    features = path.hidden[0].features
    product = tf.matmul(features, features, transpose_b=True)
    np.testing.assert_allclose(product, path.hidden[0].gram, atol=2e-5)  # the jitter
    ratios = (each.elbo_terms((X, Y), seed=1).log_ratios[0] for each in (model, plain))
    np.testing.assert_allclose(*ratios, rtol=1e-10)


@pytest.mark.usefixtures("eager")
def test_it_trains_and_is_saved() -> None:
    model = make_model(WishartLayer(gk.SquaredExponential(), 3, M, seed=0))
    fit(model, (X, Y), 1, progress=False)

    again = model_from_bytes(model_to_bytes(model))

    np.testing.assert_array_equal(again.predict_y(X[:2]), model.predict_y(X[:2]))
