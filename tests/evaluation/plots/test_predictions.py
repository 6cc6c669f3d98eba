"""Predictions against truth, calibration, and models of one input."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
from model_reference import tiny_model, toy_data
from scipy.stats import binom

from gpflow_dwp.evaluation import (
    PredictiveDistribution,
    plot_model_1d,
    plot_pit,
    plot_predictions,
    plot_reliability,
)
from gpflow_dwp.evaluation.mixture import mixture_cdf

X = np.linspace(-1.0, 1.0, 12)[:, None]
DATA = X, np.sin(3.0 * X)
COUNTS = X, np.arange(12.0)[:, None]


def test_bars_are_a_density() -> None:
    pit = np.array([0.05, 0.1, 0.3, 0.9, 1.0])

    ax = plot_pit(pit, bins=4)

    (bars,) = ax.containers
    assert [bar.get_width() for bar in bars] == pytest.approx([0.25] * 4)
    assert [bar.get_height() for bar in bars] == pytest.approx([1.6, 0.8, 0.0, 1.6])
    assert ax.get_ylim()[1] > 1.6
    with pytest.raises(ValueError, match="bins must be a positive integer"):
        plot_pit(pit, bins=0)


def test_the_band_holds_calibrated_bars() -> None:
    num, bins = 400, 10
    ax = plot_pit(np.random.default_rng(0).uniform(size=num), bins=bins, confidence=0.9)

    (bars,) = ax.containers
    (band,) = set(ax.patches) - set(bars)
    extent = ax.transData.inverted().transform_bbox(band.get_window_extent())
    low, high = binom.ppf([0.05, 0.95], num, 1.0 / bins) * bins / num
    assert (extent.y0, extent.y1) == pytest.approx((low, high))
    heights = [bar.get_height() for bar in bars]
    assert sum(low <= height <= high for height in heights) >= 8


def test_a_model_of_one_input() -> None:
    model = tiny_model(2, data=DATA)

    ax = plot_model_1d(model, DATA, num_functions=3, coverage=0.8, grid=np.linspace(-2, 2, 7))

    assert len(ax.lines) == 3 + 2
    mean, data = ax.lines[3], ax.lines[4]
    expected, _ = model.predict_y(np.linspace(-2, 2, 7)[:, None])
    np.testing.assert_allclose(mean.get_ydata(), expected[:, 0])
    np.testing.assert_array_equal(data.get_xdata(), X[:, 0])
    draws = model.predict_f_samples(np.linspace(-2, 2, 7)[:, None], 3, seed=0)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), draws[1, :, 0])
    # The band's outline runs along the lower ends and back along the upper ones.
    outline = ax.collections[0].get_paths()[0].vertices
    moments = model.posterior(seed=0).predict_y_components(np.array([[2.0]]))
    ends = outline[np.isclose(outline[:, 0], 2.0), 1]
    levels = mixture_cdf(
        np.array([[ends.min()], [ends.max()]]), *(moment.numpy()[..., 0] for moment in moments)
    )
    np.testing.assert_allclose(levels[:, 0], [0.1, 0.9], rtol=1e-6)


def test_a_model_of_warped_observations() -> None:
    """Catches functions that are drawn on the scale of warped observations."""
    model = tiny_model(1, data=DATA, warp=True)
    model.likelihood.warp.shift.assign([30.0])
    grid = np.linspace(-1, 1, 5)
    points = grid[:, None]
    posterior = model.posterior(seed=0)

    ax = plot_model_1d(model, DATA, num_functions=1, coverage=0.8, grid=grid)

    outline = ax.collections[0].get_paths()[0].vertices
    ends = outline[np.isclose(outline[:, 0], 1.0), 1]
    distribution = PredictiveDistribution.of(posterior, points)
    for end, level in ((ends.min(), 0.1), (ends.max(), 0.9)):
        np.testing.assert_allclose(distribution.cdf(np.full((5, 1), end))[-1], level, rtol=1e-6)
    function, mean, _ = ax.lines
    np.testing.assert_allclose(mean.get_ydata(), model.predict_y(points)[0][:, 0], rtol=1e-6)
    draw = model.predict_f_samples(points, 1, seed=0)[0]
    np.testing.assert_allclose(function.get_ydata(), model.likelihood.warp.inverse(draw)[:, 0])


def test_without_functions_and_with_a_default_grid() -> None:
    ax = plot_model_1d(tiny_model(1, data=DATA), DATA, num_functions=0)

    assert len(ax.lines) == 2
    assert ax.get_xlim() == pytest.approx((-1.2, 1.2))


@pytest.mark.parametrize(
    ("arguments", "data", "options", "message"),
    [
        ({}, toy_data(), {}, "one input and one output, got 2 and 1"),
        ({"likelihood": gpflow.likelihoods.Poisson()}, COUNTS, {}, "Gaussian .* got Poisson"),
        ({}, DATA, {"coverage": 1.0}, "coverage must lie strictly between 0 and 1"),
        ({}, DATA, {"num_functions": -1}, "num_functions must be an integer of at least 0"),
    ],
)
def test_refuses_models(
    arguments: dict[str, Any], data: Any, options: dict[str, Any], message: str
) -> None:
    model = tiny_model(1, data=data, **arguments)
    with pytest.raises(ValueError, match=message):
        plot_model_1d(model, data, **options)


def test_truth_and_prediction_have_one_scale() -> None:
    """Catches a diagonal that is none, and a legend on the data."""
    truth = np.array([1.0, 4.0, 2.0])
    ax = plot_predictions(truth, truth + 1.0, truth - 9.0, truth + 9.0, target="price (EUR)")

    assert ax.get_xlim() == ax.get_ylim()
    assert ax.get_aspect() == 1.0
    assert ax.get_title() == "RMSE 1, 95% intervals"
    assert ax.get_xlabel() == "observed price (EUR)"
    ax.figure.draw_without_rendering()
    (legend,) = ax.figure.legends
    assert legend.get_window_extent().y1 < ax.get_window_extent().y0
    assert ax.title.get_window_extent().y1 < ax.figure.bbox.y1


def test_reliability_counts_every_row() -> None:
    """Against shares by hand; catches bins of other rows, and intervals of another share."""
    confidence = np.linspace(0.5, 1.0, 45)
    right = np.arange(45) % 3 > 0
    ax = plot_reliability(confidence, right)

    counts = [int(text.get_text()) for text in ax.texts]
    assert (len(counts), sum(counts)) == (4, 45)
    shares = [line.get_ydata()[0] for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(shares, [part.mean() for part in np.array_split(right, 4)])
    lows, highs = np.array([line.get_ydata() for line in ax.lines[1::2]]).T
    assert np.all((lows < shares) & (shares < highs))
    assert ax.get_title() == "45 rows, 66.7% right, 75.0% expected"
