"""The sinh-arcsinh function."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.likelihoods import SinhArcsinh

SETTINGS = {
    "location": [-0.7, 0.2],
    "scale": [0.3, 2.0],
    "skewness": [0.8, -1.1],
    "tailweight": [0.6, 1.7],
    "shift": [-0.4, 0.5],
}
Y = np.random.default_rng(0).normal(size=(4, 7, 2))


def make(dtype: type = np.float64) -> SinhArcsinh:
    with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
        return SinhArcsinh(2, **SETTINGS)


def test_values_slopes_and_inverses() -> None:
    """Against a loop, automatic differentiation, and the values that it began with."""
    warp, points = make(), tf.constant(Y)
    loc, scale, skewness, tailweight, shift = (np.array(value) for value in SETTINGS.values())
    expected = shift + np.sinh(tailweight * np.arcsinh((Y - loc) / scale) - skewness)
    with tf.GradientTape() as tape:
        tape.watch(points)
        values = warp.forward(points)
    slope = tape.gradient(values, points)

    np.testing.assert_allclose(values, expected, rtol=1e-12)
    np.testing.assert_allclose(warp.log_derivative(points), np.log(slope), rtol=1e-10)
    np.testing.assert_allclose(warp.inverse(values), Y, rtol=1e-11, atol=1e-11)
    warp, points = make(np.float32), tf.constant(Y, tf.float32)
    np.testing.assert_allclose(warp.inverse(warp.forward(points)), Y, rtol=2e-4, atol=2e-4)


def test_far_values_overflow_nowhere() -> None:
    """Catches a log cosh, or a root of 1 + u², that overflows before its logarithm is taken."""
    slopes = SinhArcsinh(tailweight=2.0).log_derivative(tf.constant([[-1e30], [1e30]], tf.float64))

    assert np.all(np.isfinite(slopes))


def test_what_the_data_say_nothing_about_has_a_prior() -> None:
    parameters = gpflow.utilities.parameter_dict(SinhArcsinh())
    without = [name for name, parameter in parameters.items() if parameter.prior is None]
    assert without == [".shift", ".lower", ".upper"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(({"num_outputs": it}, "num_outputs must be a positive") for it in (0, 1.5, True, "2")),
        ({"location": [1.0, 2.0, 3.0]}, "location must be a finite number, or 2 of them, got"),
        ({"shift": np.nan}, "shift must be a finite number, or 2 of them, got"),
        ({"scale": -1.0}, "scale must be a positive number, or 2 of them, got"),
        ({"tailweight": [0.0, 1.0]}, "tailweight must be a positive number, or 2 of them, got"),
        ({"lower": np.nan}, "lower must be a finite number, or 2 of them, got"),
        ({"upper": [1.0, 2.0, 3.0]}, "upper must be a finite number, or 2 of them, got"),
        ({"lower": [0.0, 2.0], "upper": 1.0}, "lower must not be above upper, got"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    """Catches what NumPy or GPflow would say of it, which is not of which argument."""
    with pytest.raises(ValueError, match=message):
        SinhArcsinh(**{"num_outputs": 2, **arguments})
    with pytest.raises(ValueError, match="Y must have num_outputs=3 columns, as its warp, got"):
        SinhArcsinh(3).forward(tf.zeros([4, 2], tf.float64))


def test_it_goes_on_in_a_straight_line() -> None:
    """Catches an inverse that runs away beyond the data, a kink, and a slope of the wrong end."""
    warp = SinhArcsinh(scale=1e-3, tailweight=0.2, skewness=0.3, lower=-0.5, upper=2.0)
    y = tf.constant([[-3.0], [-0.5], [0.3], [2.0], [9.0]], tf.float64)
    z = warp.forward(y)
    np.testing.assert_allclose(warp.inverse(z), y, rtol=1e-9)
    slopes = np.exp(warp.log_derivative(y))
    np.testing.assert_allclose(slopes[[0, 4]], slopes[[1, 3]])
    np.testing.assert_allclose(z[4] - z[3], 7.0 * slopes[3])
    free = SinhArcsinh(scale=1e-3, tailweight=0.2, skewness=0.3)
    np.testing.assert_allclose(warp.forward(y[1:4]), free.forward(y[1:4]))
