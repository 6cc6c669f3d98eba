"""Random Fourier features: the kernel is their covariance."""

from __future__ import annotations

from typing import Any

import gpflow.kernels as gk
import model_reference
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.exceptions import UnsupportedKernelError
from gpflow_dwp.kernels import (
    LevelsMatern52,
    SeparableMatern52,
    additive_kernel,
    sample_random_functions,
)
from gpflow_dwp.random import as_seed

X = np.array([[0.0, 0.1], [0.4, -0.3], [1.5, 0.9]])
MANY = 20_000


@pytest.mark.parametrize(
    "kernel",
    [
        gk.SquaredExponential(1.7, [0.6, 0.9]),
        gk.Matern12(0.5, 0.8),
        gk.Matern32(1.3, [0.5, 2.0]),
        gk.Matern52(0.7, active_dims=[1]),
        gk.Constant(0.6),
        LevelsMatern52(1.3, [0.5, 2.0, 0.9, 1.2], [1, 1]),
        SeparableMatern52(1.3, [0.5, 2.0]),
        additive_kernel(gk.Matern52, [0.5, 2.0]),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_covariance_over_draws_is_the_kernel(kernel: gk.Kernel) -> None:
    functions = sample_random_functions(
        kernel, 2, 2, num_samples=MANY, num_features=5, seed=as_seed(0)
    )

    values = functions(tf.constant(X)[None]).numpy()

    assert values.shape == (MANY, 3, 2)
    products = np.einsum("snp,smp->snmp", values, values)
    # 5 sigma.
    for column in range(2):
        model_reference.assert_same_mean(products[..., column], kernel(X).numpy(), k_sigma=5.0)
    model_reference.assert_same_mean(values, np.zeros((3, 2)), k_sigma=5.0)
    between = values[:, :, 0] * values[:, :, 1]
    model_reference.assert_same_mean(between, np.zeros(3), k_sigma=5.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": gk.Matern12(lengthscales=[1.0, 2.0, 3.0])}, "not take inputs of 2 columns"),
        ({"num_features": 0}, "num_features must be a positive integer, got 0"),
        ({"num_functions": 1.5}, "num_functions must be a positive integer"),
        ({"seed": "a"}, "seed must be an integer, two of them or None"),
        ({"kernel": gk.Polynomial()}, "not from Polynomial"),
        ({"kernel": gk.White()}, "not from White"),
    ],
)
def test_bad_arguments_are_named(changes: dict[str, Any], message: str) -> None:
    """Catches TensorFlow's own errors."""
    arguments = {"kernel": gk.Matern32(), "num_inputs": 2, "num_functions": 1, **changes}
    error = UnsupportedKernelError if message.startswith("not from") else ValueError
    with pytest.raises(error, match=message):
        sample_random_functions(**{"num_samples": 2, "num_features": 3, "seed": 0, **arguments})
