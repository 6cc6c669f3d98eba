"""Figures hold what they should, leave pyplot alone, and can be written."""

from __future__ import annotations

import io
from typing import Any

import gpflow
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from model_reference import tiny_model, toy_data
from package_source import ROOT
from scipy.stats import binom
from sklearn.linear_model import LinearRegression, LogisticRegression

from gpflow_dwp.evaluation import (
    PredictiveDistribution,
    plot_calibration,
    plot_functions_1d,
    plot_gram_matrices,
    plot_layer_divergences,
    plot_layer_grams,
    plot_learning_curve,
    plot_model_1d,
    plot_partial_dependence,
    plot_pit,
    plot_predictions,
    plot_relevance,
    plot_reliability,
    plots,
)
from gpflow_dwp.evaluation.mixture import mixture_cdf
from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network

RNG = np.random.default_rng(0)
GRID = np.linspace(-1.0, 1.0, 20)
CALLS: dict[str, tuple[Any, list[Any]]] = {
    "learning_curve": (plot_learning_curve, [np.arange(300), -np.exp(-np.arange(300) / 9.0)]),
    "predictions": (plot_predictions, [GRID, GRID + 0.1, GRID - 0.2, GRID + 0.4]),
    "layer_divergences": (plot_layer_divergences, [-np.ones([300, 2])]),
    "pit": (plot_pit, [RNG.uniform(size=50)]),
    "calibration": (plot_calibration, [RNG.uniform(size=50)]),
    "functions_1d": (
        plot_functions_1d,
        [GRID[:, None], GRID[:, None], GRID, np.ones([3, 20]), GRID, GRID - 1.0, GRID + 1.0],
    ),
}
X = np.linspace(-1.0, 1.0, 12)[:, None]
DATA = X, np.sin(3.0 * X)
COUNTS = X, np.arange(12.0)[:, None]
INPUTS = np.random.default_rng(0).normal(size=(50, 3))

every_plot = pytest.mark.parametrize(("plot", "arguments"), CALLS.values(), ids=CALLS)


def labels(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.figure.legends[0].get_texts()]


@every_plot
def test_draws_on_a_figure_of_its_own(plot: Any, arguments: list[Any]) -> None:
    before = plt.get_fignums()
    ax = plot(*arguments)
    assert plt.get_fignums() == before
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    ax.figure.savefig(io.BytesIO(), format="png")


@every_plot
def test_draws_on_given_axes(plot: Any, arguments: list[Any]) -> None:
    figure, ax = plt.subplots()
    assert plot(*arguments, ax=ax) is ax
    plt.close(figure)


def test_learning_curve_shows_where_it_ends() -> None:
    steps = np.arange(1000)
    elbo = -1e6 * np.exp(-steps / 5.0) + np.sin(steps) - 3.0
    elbo[2] = np.nan
    low, high = plot_learning_curve(steps, elbo).get_ylim()
    assert -10.0 < low < -4.0 < -2.0 < high < 0.0


def test_predictions_counts_what_is_inside() -> None:
    ax = plot_predictions([0.0, 1.0, 2.0, 3.0], [0.0] * 4, [-0.5] * 4, [2.5] * 4, target="mpg")
    assert labels(ax)[:2] == ["truth inside (75.0%)", "truth outside (25.0%)"]
    assert ax.get_xlabel() == "observed mpg"


def test_calibration_of_known_values() -> None:
    """All targets at the medians: every central interval covers all of them."""
    model = plot_calibration(np.full(10, 0.5)).lines[-1]
    np.testing.assert_array_equal(model.get_ydata(), 1.0)
    uniform = plot_calibration((np.arange(2000) + 0.5) / 2000).lines[-1]
    np.testing.assert_allclose(uniform.get_ydata(), uniform.get_xdata(), atol=1e-3)


def test_functions_without_draws() -> None:
    function, arguments = CALLS["functions_1d"]
    ax = function(*arguments[:3], np.ones([0, 20]), *arguments[4:], interval="90% interval")
    assert labels(ax) == ["90% interval", "mean", "data"]


def test_gram_matrices_share_one_scale() -> None:
    grams = [np.eye(4), 3.0 * np.eye(6)]
    axes = plot_gram_matrices(grams, ["layer 1", "layer 2"])
    assert [ax.get_title() for ax in axes] == ["layer 1", "layer 2"]
    assert {ax.images[0].get_clim() for ax in axes} == {(0.0, 3.0)}
    axes[0].figure.savefig(io.BytesIO(), format="png")
    signed = plot_gram_matrices([-np.eye(3)], ["signed"])
    assert signed[0].images[0].get_clim() == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("plot", "arguments", "message"),
    [
        (plot_learning_curve, [[1, 2], [1.0]], r"one length, .* steps \[2\], elbo \[1\]"),
        (plot_predictions, [[], [], [], []], "at least 1"),
        (plot_calibration, [[0.5, 1.5]], r"pit must lie in \[0, 1\]"),
        (plot_calibration, [[0.5, np.nan]], r"pit must lie in \[0, 1\]"),
        (plot_pit, [[0.5, -0.1]], r"pit must lie in \[0, 1\]"),
        (
            plot_functions_1d,
            [GRID, GRID, GRID, np.ones([3, 4]), GRID, GRID, GRID],
            r"samples must have shape \[S, 20\], got \[3, 4\]",
        ),
        (plot_gram_matrices, [[], []], "at least one, got 0 matrices"),
        (plot_gram_matrices, [[np.eye(2)], ["a", "b"]], "1 matrices, 2 titles"),
        (plot_gram_matrices, [[np.ones([2, 3])], ["a"]], r"shape \[M, M\], got \[2, 3\]"),
    ],
)
def test_refuses(plot: Any, arguments: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot(*arguments)


def test_every_plot_is_shown_in_a_notebook() -> None:
    notebook = (ROOT / "notebooks" / "03_looking_at_a_model.pct.py").read_text(encoding="utf-8")
    shown = [name for name in plots.__all__ if f"axes = {name}(" in notebook]

    assert shown == plots.__all__


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
    model = tiny_model(1, data=DATA, likelihood="warped")
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


@pytest.mark.parametrize(
    ("arguments", "data", "options", "message"),
    [
        ({}, toy_data(), {}, "one input and one output, got 2 and 1"),
        ({"likelihood": gpflow.likelihoods.Poisson()}, COUNTS, {}, "of Gaussian, got Poisson"),
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


def image(ax: Any) -> np.ndarray:
    return np.asarray(ax.images[0].get_array())


def test_the_posterior_is_above_the_prior() -> None:
    model = tiny_model(3, width=4)

    axes = plot_layer_grams(model, num_samples=20, order=np.arange(5), seed=3)

    titles = ["layer 1, posterior", "layer 2, posterior", "layer 1, prior", "layer 2, prior"]
    assert [ax.get_title() for ax in axes] == titles
    grams = model.posterior(20, seed=3).gram_matrices()
    for ax, gram in zip(axes, grams, strict=False):
        np.testing.assert_allclose(image(ax), np.mean(gram, axis=0))
    scales = [ax.images[0].get_clim() for ax in axes]
    assert scales[:2] == scales[2:]
    assert scales[0] != scales[1]


def test_the_prior_of_the_first_layer_has_the_kernel_as_its_mean() -> None:
    model = tiny_model(3)
    kernel = model.layers[0].kernel(model.inducing_variable.Z).numpy()

    axes = plot_layer_grams(model, num_samples=4_000, order=np.arange(5))

    # Entries of a Wishart matrix with 2 degrees of freedom deviate by at most the variance: five
    # standard errors are 0.08 of it.
    tolerance = 0.1 * kernel.max()
    np.testing.assert_allclose(image(axes[2]), kernel, atol=tolerance)


def test_points_are_shown_over_the_input_or_ordered_by_likeness() -> None:
    one, two = tiny_model(2, data=(X, X**2)), tiny_model(2)
    Z = one.inducing_variable.Z.numpy()[:, 0]
    order = np.argsort(Z)

    expected = image(plot_layer_grams(one, num_samples=3, order=order)[0])
    over, below = plot_layer_grams(one, num_samples=3)
    (mesh,) = over.collections
    np.testing.assert_array_equal(np.ravel(mesh.get_array()), expected.ravel())
    assert (over.get_xlabel(), below.get_ylabel()) == ("x", "x")
    one.inducing_variable.Z.assign(np.r_[Z[:-1], Z[:1]][:, None])  # one of them twice
    assert plot_layer_grams(one, num_samples=3)[0].get_xlabel() == "point"

    shown = image(plot_layer_grams(two, num_samples=50)[0])
    leading = np.linalg.eigh(shown)[1][:, -1]
    assert (np.diff(leading) >= 0).all() or (np.diff(leading) <= 0).all()


@pytest.mark.parametrize(
    ("depth", "options", "message"),
    [
        (1, {}, "at least one hidden layer"),
        (2, {"num_samples": 0}, "num_samples must be a positive integer"),
        (2, {"order": [0, 1, 2, 3, 3]}, "order must hold 0 to 4 once each"),
        (2, {"order": [0, 1]}, "order must hold 0 to 4 once each"),
        (2, {"axes": [None]}, "axes must hold 2 axes, got 1"),
    ],
)
def test_refuses_layers(depth: int, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_layer_grams(tiny_model(depth), **options)


def test_matrices_over_inputs_have_each_entry_where_its_inputs_are() -> None:
    """Inputs are not equally spaced, and the first is at the top, as for matrices over numbers."""
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


def test_the_most_relevant_input_is_on_top() -> None:
    model = tiny_model(2)
    model.layers[0].kernel.lengthscales.assign([4.0, 0.5])

    ax = plot_relevance(model, feature_names=["cost in $", "size"])

    assert [label.get_text() for label in ax.get_yticklabels()] == [r"cost in \$", "size"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.25, 2.0])


def test_every_part_of_a_kernel_has_its_bars() -> None:
    stationary = gpflow.kernels.SquaredExponential(lengthscales=[1.0, 2.0])
    kernel = stationary * gpflow.kernels.ArcCosine(weight_variances=[9.0, 4.0])
    model = tiny_model(1, kernel=[kernel + gpflow.kernels.Matern32()])
    for parameter, value in zip(
        (stationary.lengthscales, kernel.kernels[1].weight_variances),
        ([1.0, 2.0], [9.0, 4.0]),
        strict=True,
    ):
        parameter.assign(value)

    ax = plot_relevance(model)

    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.5, 1.0, 2.0, 3.0])
    names = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert names == ["SquaredExponential", "ArcCosine"]


@pytest.mark.parametrize(
    ("active_dims", "lengthscales", "relevances"),
    [(None, [2.0, 1.0], [0.5, 1.0]), ([1], [2.0], [0.0, 0.5])],
)
def test_a_part_of_a_kernel_has_bars_at_the_inputs_that_it_sees(
    active_dims: Any, lengthscales: list[float], relevances: list[float]
) -> None:
    """Would catch bars at other inputs, and a part passed over for one without them before it."""
    part = gpflow.kernels.Matern52(lengthscales=lengthscales, active_dims=active_dims)
    model = tiny_model(1, kernel=[gpflow.kernels.Matern32() + part])
    part.lengthscales.assign(lengthscales)

    ax = plot_relevance(model)

    assert [label.get_text() for label in ax.get_yticklabels()] == ["input 1", "input 2"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(relevances)


@pytest.mark.parametrize(
    ("model", "names", "message"),
    [
        (tiny_model(1, kernel=[gpflow.kernels.Matern52()]), None, "one lengthscale per input"),
        (tiny_model(1, kernel=[gpflow.kernels.Linear()]), None, "one lengthscale per input"),
        (build_matrix_gaussian_network(toy_data(), width=4), None, "one lengthscale per input"),
        (tiny_model(1), ["a"], "feature_names must name 2 inputs, got 1"),
    ],
)
def test_refuses_relevance(model: Any, names: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_relevance(model, feature_names=names)


def test_partial_dependence_of_a_linear_model_is_its_line() -> None:
    y = INPUTS @ [1.0, -2.0, 0.5] + 3.0
    estimator = LinearRegression().fit(INPUTS, y)

    ax = plot_partial_dependence(estimator, INPUTS, 1, num_rows=100, feature_name="size")

    assert len(ax.lines) == 51
    mean = ax.lines[-1]
    others = (INPUTS @ [1.0, 0.0, 0.5] + 3.0).mean()
    np.testing.assert_allclose(mean.get_ydata(), others - 2.0 * mean.get_xdata())
    assert mean.get_xdata()[[0, -1]] == pytest.approx([INPUTS[:, 1].min(), INPUTS[:, 1].max()])
    deciles = [segment[0, 0] for segment in ax.collections[0].get_segments()]
    np.testing.assert_allclose(deciles, np.quantile(INPUTS[:, 1], np.linspace(0.1, 0.9, 9)))
    assert ax.get_xlabel() == "size"


def test_partial_dependence_of_a_model_and_of_probabilities() -> None:
    model = tiny_model(2)
    inputs = toy_data()[0].copy()
    ax = plot_partial_dependence(model, inputs, 0, grid=[0.0, 1.0])
    for place, value in enumerate((0.0, 1.0)):
        inputs[:, 0] = value
        mean, _ = model.predict_y(inputs)
        assert ax.lines[-1].get_ydata()[place] == pytest.approx(float(np.mean(mean)))

    classifier = LogisticRegression().fit(INPUTS, INPUTS[:, 0] > 0.0)
    rising = plot_partial_dependence(classifier, INPUTS, 0).lines[-1].get_ydata()
    falling = plot_partial_dependence(classifier, INPUTS, 0, output=0).lines[-1].get_ydata()
    assert (np.diff(rising) > 0.0).all()
    np.testing.assert_allclose(rising + falling, 1.0)


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        (INPUTS[0], {"feature": 0}, r"X must have shape \[N, D\]"),
        (INPUTS[:0], {"feature": 0}, r"X must have shape \[N, D\]"),
        (INPUTS, {"feature": 3}, "feature must be less than 3, got 3"),
        (INPUTS, {"feature": -1}, "feature must be an integer of at least 0"),
        (INPUTS, {"feature": 0, "num_rows": 0}, "num_rows must be a positive integer"),
    ],
)
def test_refuses_partial_dependence(
    inputs: np.ndarray, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plot_partial_dependence(LinearRegression().fit(INPUTS, INPUTS[:, 0]), inputs, **options)
