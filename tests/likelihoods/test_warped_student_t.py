"""Student's t noise in a function of the observations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from gpflow.likelihoods import Gaussian
from scipy import integrate, special, stats

from gpflow_dwp import build_deep_wishart_process
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedGaussian, WarpedStudentT
from gpflow_dwp.models import model_from_bytes, model_to_bytes

RNG = np.random.default_rng(0)
DF, VARIANCE = 3.4, 0.04
SCALE = np.sqrt(VARIANCE)
X = RNG.standard_normal((4, 2))
MEAN = np.array([[0.1], [0.5], [-1.0], [0.0]])
SPREAD = np.array([[0.3], [1e-3], [1.0], [0.2]])
Y = np.array([[0.4], [9.0], [2.0], [0.2]])  # the second is an outlier


def make() -> WarpedStudentT:
    return WarpedStudentT(SinhArcsinh(tailweight=0.7, skewness=0.3), VARIANCE, DF)


def warped() -> tuple[np.ndarray, np.ndarray]:
    warp = make().warp
    return tuple(part.numpy()[:, 0] for part in (warp.forward(Y), warp.log_derivative(Y)))  # type: ignore[return-value]


def log_density(distance: np.ndarray) -> np.ndarray:
    return stats.t.logpdf(distance / SCALE, DF) - np.log(SCALE)


def under_functions(of: object, row: int) -> float:
    """The integral of a function of f under q(f) of a row."""
    mean, deviation = MEAN[row, 0], np.sqrt(SPREAD[row, 0])

    def integrand(f: float) -> float:
        return of(f) * stats.norm.pdf(f, mean, deviation)  # type: ignore[operator]

    ends = mean - 12.0 * deviation, mean + 12.0 * deviation
    return integrate.quad(integrand, *ends, epsabs=1e-14, limit=500, points=[mean])[0]


def test_densities_are_scipys() -> None:
    values, slopes = warped()
    np.testing.assert_allclose(
        make().log_prob(X, MEAN, Y), log_density(values - MEAN[:, 0]) + slopes
    )
    expected = [
        np.log(under_functions(lambda f, y=value: np.exp(log_density(y - f)), row))
        for row, value in enumerate(values)
    ]
    found = make().predict_log_density(X, MEAN, SPREAD, Y)
    np.testing.assert_allclose(found, expected + slopes, atol=1e-5)


def compiled_moments(likelihood: Gaussian, *arguments: np.ndarray) -> Any:
    """Eagerly a loop over hundreds of nodes takes seconds."""
    function = tf.function(likelihood.predict_mean_and_var, autograph=False)
    return function(*map(tf.constant, arguments))


@pytest.mark.parametrize(("df", "furthest"), [(2.01, 1e5), (30.0, 500.0)])
def test_tails_are_powers_and_the_variance_is_exact(df: float, furthest: float) -> None:
    """Catches nodes of λ that end before the precision that an outlier asks for."""
    outliers = np.geomspace(1.0, furthest, 6)[:, None]
    zeros = np.zeros_like(outliers)
    likelihood = WarpedStudentT(SinhArcsinh(), 1.0, df)
    found = likelihood.predict_log_density(zeros, zeros, zeros, outliers)
    np.testing.assert_allclose(found, stats.t.logpdf(outliers[:, 0], df), atol=1e-5)
    expected = np.full_like(zeros, 0.5 + df / (df - 2.0))
    moments = compiled_moments(likelihood, zeros, zeros, zeros + 0.5)
    np.testing.assert_allclose(moments, (zeros, expected), rtol=1e-6, atol=1e-7)
    distribution = distribution_of(likelihood, zeros, zeros)
    np.testing.assert_allclose(distribution.log_density(outliers)[:, 0], found, rtol=1e-12)
    np.testing.assert_allclose(distribution.variance(), expected - 0.5, rtol=1e-6)


def distribution_of(
    likelihood: WarpedStudentT, mean: np.ndarray, variance: np.ndarray
) -> PredictiveDistribution:
    components = (part.numpy() for part in likelihood.warped_components(mean, mean, variance))
    means, variances = components
    weights = likelihood.component_weights(len(means))
    return PredictiveDistribution(means, variances, warp=likelihood.warp, weights=weights)


def test_expectations_are_bounds_with_the_best_precisions() -> None:
    """Catches a factor of E λ that is missing in a bound that is compared with others."""
    values, slopes = warped()
    found = make().variational_expectations(X, MEAN, SPREAD, Y).numpy()
    exact = [under_functions(lambda f, y=y: log_density(y - f), n) for n, y in enumerate(values)]
    assert (found <= exact + slopes).all()
    assert abs(found[1] - exact[1] - slopes[1]) < 1e-3  # where f is known
    distance = (values - MEAN[:, 0]) ** 2 + SPREAD[:, 0]
    precisions = np.linspace(1e-3, 1.4, 200_001)[:, None]
    # ½ E log λ - KL(q(λ), p(λ)) of the best Gamma q(λ) with each mean.
    half, shape = 0.5 * DF, 0.5 * (DF + 1.0)
    factor = special.gammaln(shape) - special.gammaln(half)
    factor += half * np.log(half) - shape * np.log(shape) + shape
    factor = factor + shape * np.log(precisions) - half * precisions
    bounds = -0.5 * np.log(2.0 * np.pi * VARIANCE) - 0.5 * precisions * distance / VARIANCE + factor
    np.testing.assert_allclose(bounds.max(axis=0) + slopes, found, atol=1e-6)


def test_with_many_degrees_of_freedom_it_is_gaussian() -> None:
    warp = SinhArcsinh(tailweight=0.7, skewness=0.3)
    student, gaussian = WarpedStudentT(warp, 0.2, 1e7), WarpedGaussian(warp, 0.2)
    for name in ("variational_expectations", "predict_log_density"):
        ours, limit = (getattr(each, name)(X, MEAN, SPREAD, Y) for each in (student, gaussian))
        np.testing.assert_allclose(ours, limit, rtol=1e-4)
    ours, limit = (compiled_moments(each, X, MEAN, SPREAD) for each in (student, gaussian))
    np.testing.assert_allclose(ours, limit, rtol=1e-4)


def draws(count: int = 400_000) -> np.ndarray:
    functions = MEAN[:, 0] + np.sqrt(SPREAD[:, 0]) * RNG.standard_normal((count, 4))
    noisy = functions + SCALE * RNG.standard_t(DF, functions.shape)
    return make().warp.inverse(tf.constant(noisy[..., None])).numpy()[..., 0]


def integrated_variance(row: int) -> float:
    """That of y, whose tails are too heavy for draws."""
    scores, logs = np.linspace(-8.0, 8.0, 401), np.linspace(-20.0, 20.0, 2_001)
    at = MEAN[row, 0] + np.sqrt(SPREAD[row, 0]) * scores[:, None]
    values = np.sinh(logs)
    each = stats.norm.pdf(scores) @ stats.t.pdf((values - at) / SCALE, DF)
    weights = each * np.cosh(logs)
    y = make().warp.inverse(tf.constant(values[:, None])).numpy()[:, 0]
    return float(np.cov(y, aweights=weights, ddof=0))


def test_moments_and_quantiles_are_those_of_draws() -> None:
    samples = draws()
    mean, variance = (part.numpy()[:, 0] for part in make().predict_mean_and_var(X, MEAN, SPREAD))
    error = samples.std(axis=0) / np.sqrt(len(samples))
    np.testing.assert_array_less(np.abs(samples.mean(axis=0) - mean), 5.0 * error)
    np.testing.assert_allclose(variance, [integrated_variance(row) for row in range(4)], rtol=1e-4)
    distribution = distribution_of(make(), MEAN, SPREAD)
    for level in (0.05, 0.5, 0.95, 0.99):
        below = (samples < distribution.quantile(level)[:, 0]).mean(axis=0)
        np.testing.assert_allclose(below, level, atol=3e-3)
    np.testing.assert_allclose(distribution.mean()[:, 0], mean, rtol=1e-6)
    np.testing.assert_allclose(distribution.variance()[:, 0], variance, rtol=1e-6)
    pairs = np.abs(samples[:200_000] - samples[200_000:]).mean(axis=0)
    crps = np.abs(samples - Y[:, 0]).mean(axis=0) - 0.5 * pairs
    np.testing.assert_allclose(distribution.crps(Y)[:, 0], crps, rtol=0.02)


def test_it_starts_at_gaussian_noise() -> None:
    gaussian = WarpedGaussian(SinhArcsinh(tailweight=0.7), 0.5)
    student = WarpedStudentT.of(gaussian)
    assert float(student.warp.tailweight.numpy()[0]) == pytest.approx(0.7)
    assert student.warp is not gaussian.warp and student.warp.trainable_parameters
    plain = WarpedStudentT.of(Gaussian([0.1, 0.2]))
    assert not plain.warp.trainable_parameters and plain.warp.num_outputs == 2
    np.testing.assert_allclose(plain.variance, [0.06, 0.12])


@pytest.mark.parametrize("df", [2.0, np.nan, np.inf, [4.0, 5.0], "4"])
def test_degrees_of_freedom_that_are_refused(df: object) -> None:
    with pytest.raises(ValueError, match=r"df must (be a number above 2|hold real numbers)"):
        WarpedStudentT(SinhArcsinh(), 0.1, df)  # type: ignore[arg-type]


def test_models_draw_save_and_take_other_rows() -> None:
    """Catches precisions of rows that are lost, or are those of other rows."""
    rows = RNG.uniform(-1.0, 1.0, (30, 1)), RNG.standard_normal((30, 1))
    model = build_deep_wishart_process(rows, 2, num_inducing=5, likelihood="warped_student_t")
    model.output_layer.precisions.assign(RNG.uniform(0.1, 1.2, 30))
    same = model_from_bytes(model_to_bytes(model))
    np.testing.assert_array_equal(same.elbo(rows, seed=0), model.elbo(rows, seed=0))
    at = rows[0][:3]
    samples = model.predict_y_samples(at, 10_000, seed=1).numpy()
    distribution = PredictiveDistribution.of(model.posterior(200, seed=0), at)
    below = (samples < distribution.quantile(0.95)).mean(axis=0)
    np.testing.assert_allclose(below, 0.95, atol=0.01)
    np.testing.assert_allclose(
        distribution.mean(), model.predict_y(at, num_samples=200)[0], rtol=1e-6
    )
    model.set_data((rows[0][:20], rows[1][:20]))
    assert np.isfinite(model.elbo((rows[0][:20], rows[1][:20])))
    np.testing.assert_array_equal(model.output_layer.precisions, np.ones(20))
