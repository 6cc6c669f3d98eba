"""The deep inverse Wishart process: its bound, and where it becomes another known model."""

from __future__ import annotations

import gpflow
import gpflow.kernels as gk
import numpy as np
import tensorflow as tf
from model_reference import tiny_model, toy_data

from gpflow_dwp.kernels import gram_K_cross, gram_K_diag
from gpflow_dwp.models import DeepInverseWishartProcess, build_deep_inverse_wishart_process

DATA = toy_data()


def tiny(depth: int = 2, **arguments: object) -> DeepInverseWishartProcess:
    return tiny_model(depth, build_deep_inverse_wishart_process, **arguments)


class Composition(gk.Kernel):
    """Kernels, each applied to the Gram matrix of the one before."""

    def __init__(self, bottom: gk.Kernel, *above: gk.Kernel) -> None:
        super().__init__()
        self.bottom, self.above = bottom, above

    def K(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        X2 = X if X2 is None else X2
        cross, rows, columns = (
            value[None]
            for value in (self.bottom.K(X, X2), self.bottom.K_diag(X), self.bottom.K_diag(X2))
        )
        for kernel in self.above:
            cross = gram_K_cross(kernel, cross, rows, columns)
            rows, columns = gram_K_diag(kernel, rows), gram_K_diag(kernel, columns)
        return cross[0]

    def K_diag(self, X: tf.Tensor) -> tf.Tensor:
        return tf.linalg.diag_part(self.K(X))


def test_with_many_degrees_of_freedom_it_is_regression_with_the_composition_of_its_kernels() -> (
    None
):
    model = tiny(3)
    for layer in model.hidden_layers:
        layer.df.assign(1e12)
        layer.extra_df.assign(1e-12)
        layer.root_scale.assign(1e-12)
    output = gpflow.utilities.deepcopy(model.output_layer)
    output.kernel = Composition(*(layer.kernel for layer in model.layers))
    composed = DeepInverseWishartProcess(
        [output], model.likelihood, model.inducing_variable, model.num_data
    )

    value, expected = model.elbo_terms(DATA, seed=0), composed.elbo_terms(DATA)

    np.testing.assert_allclose(value.data, expected.data, rtol=1e-3)
    np.testing.assert_allclose(value.log_ratios, [0.0, 0.0, *expected.log_ratios], atol=1e-3)
