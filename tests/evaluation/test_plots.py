"""Figures hold what they should, leave pyplot alone, and can be written."""

from __future__ import annotations

import io
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from model_reference import tiny_model, toy_data
from package_source import ROOT

from gpflow_dwp import evaluation
from gpflow_dwp.evaluation import (
    PredictiveDistribution,
    plot_calibration,
    plot_functions_1d,
    plot_gram_matrices,
    plot_layer_divergences,
    plot_layer_grams,
    plot_learning_curve,
    plot_model_1d,
    plot_predictions,
)

RNG = np.random.default_rng(0)
GRID = np.linspace(-1.0, 1.0, 20)
CALLS: dict[Any, list[Any]] = {
    plot_learning_curve: [np.arange(300), -np.exp(-np.arange(300) / 9.0)],
    plot_predictions: [GRID, GRID + 0.1, GRID - 0.2, GRID + 0.4],
    plot_layer_divergences: [-np.ones([300, 2])],
    plot_calibration: [RNG.uniform(size=50)],
    plot_functions_1d: [
        *(GRID[:, None], GRID[:, None], GRID, np.ones([3, 20]), GRID, GRID - 1.0, GRID + 1.0),
    ],
}
X = np.linspace(-1.0, 1.0, 12)[:, None]
DATA = X, np.sin(3.0 * X)


@pytest.mark.parametrize("plot", CALLS)
def test_draws_on_a_figure_of_its_own_or_on_given_axes(plot: Any) -> None:
    before = plt.get_fignums()
    ax = plot(*CALLS[plot])
    assert plt.get_fignums() == before
    assert ax.get_xlabel() and ax.get_ylabel()
    ax.figure.savefig(io.BytesIO(), format="png")
    figure, ax = plt.subplots()
    assert plot(*CALLS[plot], ax=ax) is ax
    plt.close(figure)


def test_every_plot_is_shown_in_a_notebook() -> None:
    notebook = (ROOT / "notebooks" / "03_looking_at_a_model.pct.py").read_text(encoding="utf-8")
    plots = [name for name in evaluation.__all__ if name.startswith("plot_")]

    assert [name for name in plots if f"axes = {name}(" in notebook] == plots


def test_learning_curve_shows_where_it_ends() -> None:
    steps = np.arange(1000)
    elbo = -1e6 * np.exp(-steps / 5.0) + np.sin(steps) - 3.0
    elbo[2] = np.nan
    low, high = plot_learning_curve(steps, elbo).get_ylim()
    assert -10.0 < low < -4.0 < -2.0 < high < 0.0


def test_calibration_of_known_values() -> None:
    """All targets at the medians: every central interval covers all of them."""
    model = plot_calibration(np.full(10, 0.5)).lines[-1]
    np.testing.assert_array_equal(model.get_ydata(), 1.0)
    uniform = plot_calibration((np.arange(2000) + 0.5) / 2000).lines[-1]
    np.testing.assert_allclose(uniform.get_ydata(), uniform.get_xdata(), atol=1e-3)


@pytest.mark.parametrize(
    ("plot", "arguments", "message"),
    [
        (plot_learning_curve, [[1, 2], [1.0]], r"one length, .* steps \[2\], elbo \[1\]"),
        (plot_predictions, [[], [], [], []], "at least 1"),
        (plot_calibration, [[0.5, np.nan]], r"pit must lie in \[0, 1\]"),
        (
            plot_functions_1d,
            [GRID, GRID, GRID, np.ones([3, 4]), GRID, GRID, GRID],
            r"samples must have shape \[S, 20\], got \[3, 4\]",
        ),
        (plot_gram_matrices, [[np.ones([2, 3])], ["a"]], r"shape \[M, M\], got \[2, 3\]"),
        (plot_layer_grams, [tiny_model(1)], "at least one hidden layer"),
        (plot_layer_grams, [tiny_model(2), [None]], "axes must hold 2 axes, got 1"),
        (plot_model_1d, [tiny_model(1), toy_data()], "one input and one output, got 2 and 1"),
    ],
)
def test_refuses(plot: Any, arguments: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot(*arguments)


def test_a_model_of_warped_observations() -> None:
    """Catches functions that are drawn on the scale of warped observations, and other intervals."""
    model = tiny_model(1, data=DATA, likelihood="warped")
    model.likelihood.warp.shift.assign([30.0])
    grid = np.linspace(-1, 1, 5)
    points = grid[:, None]

    ax = plot_model_1d(model, DATA, num_functions=1, coverage=0.8, grid=grid)

    # The band's outline runs along the lower ends and back along the upper ones.
    outline = ax.collections[0].get_paths()[0].vertices
    ends = outline[np.isclose(outline[:, 0], 1.0), 1]
    distribution = PredictiveDistribution.of(model.posterior(seed=0), points)
    for end, level in ((ends.min(), 0.1), (ends.max(), 0.9)):
        np.testing.assert_allclose(distribution.cdf(np.full((5, 1), end))[-1], level, rtol=1e-6)
    function, mean, data = ax.lines
    np.testing.assert_array_equal(data.get_xdata(), X[:, 0])
    np.testing.assert_allclose(mean.get_ydata(), model.predict_y(points)[0][:, 0], rtol=1e-6)
    draw = model.predict_f_samples(points, 1, seed=0)[0]
    np.testing.assert_allclose(function.get_ydata(), model.likelihood.warp.inverse(draw)[:, 0])


def test_truth_and_prediction_have_one_scale() -> None:
    """Catches a diagonal that is none, a legend on the data, and intervals counted wrongly."""
    truth = np.array([1.0, 4.0, 2.0])
    ax = plot_predictions(truth, truth + 1.0, truth - 9.0, [9.0, 3.0, 9.0], target="price (EUR)")

    assert ax.get_xlim() == ax.get_ylim()
    assert ax.get_aspect() == 1.0
    assert ax.get_title() == "RMSE 1, 95% intervals"
    assert ax.get_xlabel() == "observed price (EUR)"
    ax.figure.draw_without_rendering()
    (legend,) = ax.figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels[:2] == ["truth inside (66.7%)", "truth outside (33.3%)"]
    assert legend.get_window_extent().y1 < ax.get_window_extent().y0
    assert ax.title.get_window_extent().y1 < ax.figure.bbox.y1


def image(ax: Any) -> np.ndarray:
    return np.asarray(ax.images[0].get_array())


def test_the_posterior_is_above_the_prior() -> None:
    """The prior of the first layer has the kernel as its mean."""
    model = tiny_model(3)
    kernel = model.layers[0].kernel(model.inducing_variable.Z).numpy()

    axes = plot_layer_grams(model, num_samples=4_000, order=np.arange(5), seed=3)

    titles = ["layer 1, posterior", "layer 2, posterior", "layer 1, prior", "layer 2, prior"]
    assert [ax.get_title() for ax in axes] == titles
    grams = model.posterior(4_000, seed=3).gram_matrices()
    for ax, gram in zip(axes, grams, strict=False):
        np.testing.assert_allclose(image(ax), np.mean(gram, axis=0))
    scales = [ax.images[0].get_clim() for ax in axes]
    assert scales[:2] == scales[2:]
    assert scales[0] != scales[1]
    # Entries of a Wishart matrix with 2 degrees of freedom deviate by at most the variance: five
    # standard errors are 0.08 of it.
    np.testing.assert_allclose(image(axes[2]), kernel, atol=0.1 * kernel.max())


def test_points_are_shown_over_the_input_or_ordered_by_likeness() -> None:
    one, two = tiny_model(2, data=(X, X**2)), tiny_model(2)
    Z = one.inducing_variable.Z.numpy()[:, 0]
    order = np.argsort(Z)

    expected = image(plot_layer_grams(one, num_samples=3, order=order)[0])
    over, below = plot_layer_grams(one, num_samples=3)
    (mesh,) = over.collections
    np.testing.assert_array_equal(np.ravel(mesh.get_array()), expected.ravel())
    assert (over.get_xlabel(), below.get_ylabel()) == ("x", "x")
    shown = image(plot_layer_grams(two, num_samples=50)[0])
    leading = np.linalg.eigh(shown)[1][:, -1]
    assert (np.diff(leading) >= 0).all() or (np.diff(leading) <= 0).all()


def test_matrices_share_one_scale_and_have_each_entry_where_its_inputs_are() -> None:
    """Inputs are not equally spaced, and the first is at the top, as for matrices over numbers."""
    axes = plot_gram_matrices([np.eye(4), 3.0 * np.eye(6)], ["layer 1", "layer 2"])
    assert [ax.get_title() for ax in axes] == ["layer 1", "layer 2"]
    assert {ax.images[0].get_clim() for ax in axes} == {(0.0, 3.0)}
    axes[0].figure.savefig(io.BytesIO(), format="png")

    x, gram = np.array([0.0, 1.0, 3.0, 4.0]), np.arange(16.0).reshape(4, 4)
    (ax,) = plot_gram_matrices([gram], ["G"], x=x)
    (mesh,) = ax.collections
    assert np.array_equal(np.asarray(mesh.get_array()).reshape(4, 4), gram)
    corners = mesh.get_coordinates()
    for row, column in np.ndindex(4, 4):
        (left, top), (right, bottom) = corners[row, column], corners[row + 1, column + 1]
        assert left < x[column] < right
        assert top < x[row] < bottom
    assert ax.yaxis_inverted()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "x")
