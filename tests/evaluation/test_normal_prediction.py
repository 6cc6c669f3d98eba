"""Normal predictions and their CRPS: each against a closed form or a loop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from gpflow_dwp.evaluation.metrics import mixture_crps
from gpflow_dwp.evaluation.normal_prediction import LEVELS, NormalPrediction, quantile_crps

MEANS, DEVIATIONS = np.array([1.0, -2.0, 30.0]), np.array([0.5, 2.0, 10.0])


@pytest.mark.parametrize(("z", "tolerance"), [(0.0, 1e-5), (-1.0, 1e-4), (1.0, 1e-4), (3.0, 2e-3)])
def test_crps_of_a_normal_is_the_closed_form(z: float, tolerance: float) -> None:
    """Gneiting and Raftery (2007), eq. 21: a factor of 2, or pinballs the wrong way round."""
    deviation = 5.0
    y = np.array([10.0 + z * deviation])

    found = quantile_crps(y, NormalPrediction(np.array([10.0]), deviation).quantiles(LEVELS))

    exact = z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi)
    assert found == pytest.approx(deviation * exact, abs=deviation * tolerance)


def test_crps_is_that_of_the_librarys_exact_one() -> None:
    pytest.importorskip("scoringrules")
    rng = np.random.default_rng(0)
    y, means, deviations = rng.normal(size=(3, 200))
    deviations = 0.2 + np.abs(deviations)

    found = quantile_crps(y, NormalPrediction(means, deviations).quantiles(LEVELS))

    exact = mixture_crps(y, means[None], np.square(deviations)[None])
    assert found == pytest.approx(exact, rel=2e-3)


def test_crps_of_a_skewed_distribution_is_the_pinball_loss_by_a_loop() -> None:
    y, quantiles = np.array([0.3, 2.0]), -np.log1p(-LEVELS) * np.array([[1.0], [3.0]])

    expected = 0.0
    for target, row in zip(y, quantiles, strict=True):
        for level, quantile in zip(LEVELS, row, strict=True):
            error = target - quantile
            expected += 2.0 * (level * error if error > 0.0 else (level - 1.0) * error)

    assert quantile_crps(y, quantiles) == pytest.approx(expected / (2 * len(LEVELS)), rel=1e-12)


@pytest.mark.parametrize("shape", [(3, 98), (2, 99), (99,)])
def test_crps_of_other_shapes_is_refused(shape: tuple[int, ...]) -> None:
    """Broadcasting would turn them into a number."""
    with pytest.raises(ValueError, match=r"quantiles must have shape \[N, 99\]"):
        quantile_crps(np.zeros(3), np.zeros(shape))


def test_normal_log_density_is_that_of_the_formula() -> None:
    y = np.array([1.2, 0.0, 55.0])

    found = NormalPrediction(MEANS, DEVIATIONS).log_density(y)

    expected = -0.5 * ((y - MEANS) / DEVIATIONS) ** 2 - np.log(DEVIATIONS * np.sqrt(2.0 * np.pi))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("deviations", [DEVIATIONS, 2.5])
def test_normal_quantiles_invert_the_distribution_function(deviations: object) -> None:
    """With one deviation for all rows, too, which must not become an axis of its own."""
    levels = np.array([0.05, 0.5, 0.8])

    found = NormalPrediction(MEANS, deviations).quantiles(levels)

    assert found.shape == (3, 3)
    z = (found - MEANS[:, None]) / np.broadcast_to(deviations, 3)[:, None]
    np.testing.assert_allclose(ndtr(z), np.tile(levels, (3, 1)), rtol=1e-12)
