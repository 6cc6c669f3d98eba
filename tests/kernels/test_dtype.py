from __future__ import annotations

import gpflow
import gpflow.kernels as gk
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.kernels.gram import kernel_in_dtype

KERNELS = {
    "squared exponential": lambda: gk.SquaredExponential(lengthscales=[0.5, 2.0]),
    "matern": lambda: gk.Matern32(1.5, 0.7),
    "sum of products": lambda: gk.RBF(0.5) * gk.Linear(0.2) + gk.Constant(2.0) + gk.Matern12(),
    "periodic": lambda: gk.Periodic(gk.RBF(), period=1.7),
    "arc cosine": lambda: gk.ArcCosine(order=1, weight_variances=[0.5, 2.0]),
    "change points": lambda: gk.ChangePoints([gk.RBF(), gk.Linear()], [0.1], steepness=3.0),
}


@pytest.mark.parametrize("name", KERNELS)
def test_values_and_gradients_are_those_of_the_other_precision(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(4, 1 if name == "change points" else 2))
    expected = KERNELS[name]()
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        kernel = KERNELS[name]()
        variables = kernel.trainable_variables
        with tf.GradientTape() as tape:
            accurate = kernel_in_dtype(kernel, tf.float64)
            values, diagonal = accurate(X), accurate(X, full_cov=False)
            total = tf.reduce_sum(values**2)
        gradients = tape.gradient(total, variables)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(expected(X) ** 2)

    assert values.dtype == tf.float64
    np.testing.assert_allclose(values, expected(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(diagonal, np.diag(values), rtol=1e-6)
    others = tape.gradient(total, expected.trainable_variables)
    for gradient, other in zip(gradients, others, strict=True):
        assert gradient.dtype == tf.float32
        np.testing.assert_allclose(gradient, other, rtol=1e-4, atol=1e-4)
    assert all(parameter.dtype == tf.float32 for parameter in kernel.parameters)


def test_the_same_precision_is_the_same_kernel() -> None:
    kernel = gk.RBF() + gk.White()

    assert kernel_in_dtype(kernel, tf.float64) is kernel
