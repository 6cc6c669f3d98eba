"""The sinh-arcsinh function."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

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


def test_it_starts_as_the_identity() -> None:
    warp = SinhArcsinh(2)

    np.testing.assert_allclose(warp.forward(tf.constant(Y)), Y, rtol=1e-12)
    np.testing.assert_allclose(warp.log_derivative(tf.constant(Y)), 0.0, atol=1e-12)


def test_values_are_those_of_a_loop() -> None:
    loc, scale, skewness, tailweight, shift = (np.array(value) for value in SETTINGS.values())
    expected = shift + np.sinh(tailweight * np.arcsinh((Y - loc) / scale) - skewness)

    np.testing.assert_allclose(make().forward(tf.constant(Y)), expected, rtol=1e-12)


def test_a_normal_of_it_has_the_density_of_the_distribution_of_that_name() -> None:
    """Catches a wrong Jacobian: Jones and Pewsey's density, with ε and δ by their definition."""
    warp = SinhArcsinh(skewness=0.8, tailweight=0.6)
    points = np.linspace(-3.0, 40.0, 200_001)[:, None]

    Z, slopes = warp.forward(tf.constant(points)), warp.log_derivative(tf.constant(points))
    density = np.exp(stats.norm.logpdf(Z) + slopes)[:, 0]

    edges = stats.norm.cdf(Z.numpy()[[0, -1], 0])
    total = np.sum(0.5 * (density[1:] + density[:-1]) * np.diff(points[:, 0]))
    np.testing.assert_allclose(total, edges[1] - edges[0], rtol=1e-6)


def test_the_slope_is_that_of_automatic_differentiation() -> None:
    warp, points = make(), tf.constant(Y)
    with tf.GradientTape() as tape:
        tape.watch(points)
        values = warp.forward(points)

    slope = tape.gradient(values, points)

    np.testing.assert_allclose(warp.log_derivative(points), np.log(slope), rtol=1e-10)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 2e-4)])
def test_the_inverse_goes_back(dtype: type, tolerance: float) -> None:
    warp, points = make(dtype), tf.constant(Y, dtype)

    np.testing.assert_allclose(
        warp.inverse(warp.forward(points)), Y, rtol=tolerance, atol=tolerance
    )


def test_far_values_overflow_nowhere() -> None:
    """Catches a log cosh, or a root of 1 + u², that overflows before its logarithm is taken."""
    slopes = SinhArcsinh(tailweight=2.0).log_derivative(tf.constant([[-1e30], [1e30]], tf.float64))

    assert np.all(np.isfinite(slopes))


def test_what_the_data_say_nothing_about_has_a_prior() -> None:
    warp = SinhArcsinh()

    assert [
        name for name, p in gpflow.utilities.parameter_dict(warp).items() if p.prior is None
    ] == [".shift", ".lower", ".upper"]


@pytest.mark.parametrize("num_outputs", [0, 1.5, True, "2"])
def test_columns_are_counted(num_outputs: object) -> None:
    with pytest.raises(ValueError, match="num_outputs must be a positive integer"):
        SinhArcsinh(num_outputs)  # type: ignore[arg-type]


def test_observations_of_other_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="Y must have num_outputs=3 columns, as its warp, got"):
        SinhArcsinh(3).forward(tf.zeros([4, 2], tf.float64))


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("location", [1.0, 2.0, 3.0], "finite"),
        ("shift", np.nan, "finite"),
        ("scale", -1.0, "positive"),
        ("tailweight", [0.0, 1.0], "positive"),
    ],
)
def test_starting_values_are_named(name: str, value: object, kind: str) -> None:
    """Catches what NumPy or GPflow would say of it, which is not of which argument."""
    with pytest.raises(ValueError, match=f"{name} must be a {kind} number, or 2 of them, got"):
        SinhArcsinh(2, **{name: value})  # type: ignore[arg-type]


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
