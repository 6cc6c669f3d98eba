"""Gram matrices layer by layer: posterior and prior."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from model_reference import tiny_model

from gpflow_dwp.evaluation import plot_gram_matrices, plot_layer_grams
from gpflow_dwp.models import build_deep_gaussian_process, build_deep_inverse_wishart_process


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


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"build": build_deep_gaussian_process, "width": 3},
        {"build": build_deep_inverse_wishart_process},
    ],
    ids=["wishart", "gaussian", "inverse_wishart"],
)
def test_the_prior_of_the_first_layer_has_the_kernel_as_its_mean(arguments: Any) -> None:
    model = tiny_model(3, **arguments)
    kernel = model.layers[0].kernel(model.inducing_variable.Z).numpy()

    axes = plot_layer_grams(model, num_samples=4_000, order=np.arange(5))

    # Entries of a Wishart matrix with 2 degrees of freedom deviate by at most the variance: five
    # standard errors are 0.08 of it. Those of the inverse Wishart deviate less.
    tolerance = 0.1 * kernel.max()
    np.testing.assert_allclose(image(axes[2]), kernel, atol=tolerance)


def test_points_are_shown_over_the_input_or_ordered_by_likeness() -> None:
    X = np.linspace(-1.0, 1.0, 12)[:, None]
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


def test_given_axes() -> None:
    figure, given = plt.subplots(2, 1)
    assert plot_layer_grams(tiny_model(2), list(given), num_samples=2) == list(given)
    plt.close(figure)


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
def test_refuses(depth: int, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_layer_grams(tiny_model(depth), **options)


def test_refuses_other_models() -> None:
    with pytest.raises(ValueError, match="model must be an instance of DeepKernelProcess, got str"):
        plot_layer_grams("model")  # type: ignore[arg-type]


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


@pytest.mark.parametrize("x", [[0.0, 1.0], [0.0, 2.0, 1.0], [[0.0], [1.0], [2.0]]])
def test_refuses_inputs_that_are_not_those_of_the_points(x: Any) -> None:
    with pytest.raises(ValueError, match="x must be an increasing vector of 3 inputs"):
        plot_gram_matrices([np.eye(3)], ["G"], x=x)
