"""Predictions in raw units, also of warped targets, against draws and other formulas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.likelihoods import SinhArcsinh

S, N, P = 3, 4, 2
RNG = np.random.default_rng(0)
MEANS, VARIANCES = RNG.normal(size=(S, N, P)), RNG.gamma(2.0, 0.2, size=(S, N, P))
TARGET = Standardiser([100.0, -5.0], [20.0, 0.3])
WARP = SinhArcsinh(P, skewness=[0.6, -0.3], tailweight=[0.6, 1.5], location=0.2, scale=0.7)
WARPED = PredictiveDistribution(MEANS, VARIANCES, TARGET, WARP)
PLAIN = PredictiveDistribution(MEANS, VARIANCES, TARGET)
Y = TARGET.inverse_transform(RNG.normal(size=(N, P)))
COUNT = 200_000


@pytest.fixture(scope="module")
def draws() -> np.ndarray:
    """Draws of raw targets, made step by step, [COUNT, N, P]."""
    rng = np.random.default_rng(1)
    chosen = rng.integers(0, S, COUNT)
    normals = MEANS[chosen] + np.sqrt(VARIANCES[chosen]) * rng.standard_normal((COUNT, N, P))
    return TARGET.inverse_transform(WARP.inverse(tf.constant(normals)))


def test_moments_are_those_of_draws(draws: np.ndarray) -> None:
    deviation = draws.std(axis=0)

    assert (np.abs(draws.mean(axis=0) - WARPED.mean()) < 5.0 * deviation / np.sqrt(COUNT)).all()
    np.testing.assert_allclose(WARPED.variance(), deviation**2, rtol=0.05)


def test_quantiles_are_those_of_draws_and_the_distribution_their_inverse(draws: np.ndarray) -> None:
    """Catches quantiles that are unwarped after raw units, or in the wrong order."""
    levels = [0.05, 0.5, 0.9]

    quantiles = WARPED.quantile(levels)

    for level, quantile in zip(levels, quantiles, strict=True):
        error = np.sqrt(level * (1.0 - level) / COUNT)
        np.testing.assert_allclose((draws <= quantile).mean(axis=0), level, atol=5.0 * error)
        np.testing.assert_allclose(WARPED.cdf(quantile), level, rtol=1e-9)
        np.testing.assert_allclose(WARPED.quantile(level), quantile, rtol=1e-12)


def test_densities_are_slopes_of_the_distribution() -> None:
    """Catches a missing Jacobian, of the warp or of the units."""
    step = 1e-5 * TARGET.scale
    for level in (0.1, 0.7):
        y = WARPED.quantile(level)

        slopes = (WARPED.cdf(y + step) - WARPED.cdf(y - step)) / (2.0 * step)

        np.testing.assert_allclose(np.exp(WARPED.log_density(y)), slopes, rtol=1e-6)


def test_crps_is_that_of_draws(draws: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 5 standard errors of E|y - t| - ½ E|y - y'|, also in blocks of rows."""
    first, second = draws[: COUNT // 2], draws[COUNT // 2 :]
    terms = 0.5 * (np.abs(first - Y) + np.abs(second - Y)) - 0.5 * np.abs(first - second)
    error = terms.std(axis=0) / np.sqrt(COUNT // 2)

    whole = WARPED.crps(Y)
    assert (np.abs(whole - terms.mean(axis=0)) < 5.0 * error).all()
    monkeypatch.setattr("gpflow_dwp.evaluation.predictive_distribution._MAX_VALUES", 1)
    np.testing.assert_allclose(WARPED.crps(Y), whole, rtol=1e-12)


SHAPES = {
    "far apart": (100.0 * RNG.normal(size=(5, N, 1)), RNG.gamma(2.0, 0.3, (5, N, 1))),
    "narrow among wide": (
        RNG.normal(size=(10, N, 1)),
        np.where(np.arange(10) % 5 == 0, 1e-8, 1.0)[:, None, None] * np.ones((10, N, 1)),
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_crps_without_a_warp_is_that_with_the_identity(name: str) -> None:
    """Catches panels that miss narrow components, and truths beyond all of them."""
    truth = np.array([[-1_000.0], [-1.0], [0.3], [30.0]])
    plain = PredictiveDistribution(*SHAPES[name])

    warped = replace(plain, warp=SinhArcsinh())

    np.testing.assert_allclose(warped.crps(truth), plain.crps(truth), rtol=2e-6)


def test_without_a_warp_it_is_the_mixture_of_normals() -> None:
    identity = replace(PLAIN, warp=SinhArcsinh(P))
    for of_y in ("cdf", "log_density", "crps"):
        np.testing.assert_allclose(getattr(PLAIN, of_y)(Y), getattr(identity, of_y)(Y), rtol=1e-5)
    for moment in ("mean", "variance"):
        np.testing.assert_allclose(
            getattr(PLAIN, moment)(), getattr(identity, moment)(), rtol=1e-10
        )
    raw = stats.norm(TARGET.inverse_transform(MEANS), TARGET.scale * np.sqrt(VARIANCES))
    np.testing.assert_allclose(PLAIN.cdf(Y), raw.cdf(Y).mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(PLAIN.log_density(Y), np.log(raw.pdf(Y).mean(axis=0)), rtol=1e-9)


def test_samples_have_the_distribution() -> None:
    samples = WARPED.sample(300, seed=1)

    assert samples.shape == (300, N, P)
    parts = {name: np.tile(getattr(WARPED, name), (1, 300, 1)) for name in ("means", "variances")}
    levels = replace(WARPED, **parts).cdf(samples.reshape(-1, P))
    assert stats.kstest(levels.ravel(), "uniform").pvalue > 1e-3


def test_refuses_shapes() -> None:
    cases: list[tuple[Any, Any, str]] = [
        (MEANS[0], VARIANCES[0], r"shape \[S, N, P\], got \[4, 2\]"),
        (MEANS, VARIANCES[:1], r"got \[3, 4, 2\] and \[1, 4, 2\]"),
        (MEANS[..., :1], VARIANCES[..., :1], "target must have 1 columns"),
        (MEANS[:0], VARIANCES[:0], r"got \[0, 4, 2\]"),
        (MEANS, -VARIANCES, "variances finite and positive"),
        (MEANS * np.nan, VARIANCES, "means must be finite"),
    ]
    for means, variances, message in cases:
        with pytest.raises(ValueError, match=message):
            PredictiveDistribution(means, variances, TARGET)
    for method in ("cdf", "log_density", "crps"):
        with pytest.raises(ValueError, match=r"y must have shape \[4, 2\], got \[4\]"):
            getattr(WARPED, method)(Y[:, 0])
    for levels in (0.0, 1.0, [0.5, 1.2], np.nan, [[0.5]]):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            WARPED.quantile(levels)


def test_a_recorded_target_has_the_probability_of_its_cell_by_its_width() -> None:
    """Catches a width in the wrong unit, and a density where a step is given."""
    rng = np.random.default_rng(0)
    means, variances = rng.standard_normal((3, 4, 2)), rng.uniform(0.1, 1.0, (3, 4, 2))
    target = Standardiser(np.array([1.0, -2.0]), np.array([10.0, 0.5]))
    distribution = PredictiveDistribution(means, variances, target, SinhArcsinh(2, tailweight=0.7))
    y, step = target.inverse_transform(rng.standard_normal((4, 2))), np.array([5.0, 0.0])
    cells = distribution.cdf(y + 0.5 * step) - distribution.cdf(y - 0.5 * step)
    found = distribution.log_density(y, step)
    np.testing.assert_allclose(found[:, 0], np.log(cells[:, 0] / 5.0))
    np.testing.assert_allclose(found[:, 1], distribution.log_density(y)[:, 1])
    tail = distribution.log_density(y + 1e4 * step, step)
    assert np.isfinite(tail).all() and np.all(tail[:, 0] < -100.0)
    with pytest.raises(ValueError, match="step must be finite and not negative"):
        distribution.log_density(y, -1.0)
