from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.iterates import assign_parameter_vector, parameter_vector


def test_round_trip() -> None:
    kernel = gpflow.kernels.Matern32(lengthscales=[1.0, 2.0])
    vector = parameter_vector(kernel)
    assert vector.shape == (3,)

    assign_parameter_vector(kernel, vector + 0.5)
    np.testing.assert_allclose(parameter_vector(kernel), vector + 0.5)
    np.testing.assert_allclose(kernel.variance.unconstrained_variable, np.log(np.expm1(1.0)) + 0.5)


def test_fixed_parameters_stay_out() -> None:
    kernel = gpflow.kernels.Matern32()
    gpflow.set_trainable(kernel.variance, False)

    assert parameter_vector(kernel).shape == (1,)


def test_what_is_refused() -> None:
    kernel = gpflow.kernels.Matern32()
    before = parameter_vector(kernel)

    with pytest.raises(ValueError, match=r"vector must have shape \(2,\), got \(3,\)"):
        assign_parameter_vector(kernel, np.zeros(3))
    np.testing.assert_array_equal(parameter_vector(kernel), before)
    with pytest.raises(ValueError, match="Module has no trainable parameters"):
        parameter_vector(tf.Module())
