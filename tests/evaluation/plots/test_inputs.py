"""Relevance of inputs, and partial dependence."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
from model_reference import tiny_model, toy_data
from sklearn.linear_model import LinearRegression, LogisticRegression

from gpflow_dwp.evaluation import plot_partial_dependence, plot_relevance
from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network

DATA = toy_data()
X = np.random.default_rng(0).normal(size=(50, 3))


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
        (build_matrix_gaussian_network(DATA, width=4), None, "one lengthscale per input"),
        (tiny_model(1), ["a"], "feature_names must name 2 inputs, got 1"),
    ],
)
def test_refuses_relevance(model: Any, names: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_relevance(model, feature_names=names)


def test_partial_dependence_of_a_linear_model_is_its_line() -> None:
    y = X @ [1.0, -2.0, 0.5] + 3.0
    estimator = LinearRegression().fit(X, y)

    ax = plot_partial_dependence(estimator, X, 1, num_rows=100, feature_name="size")

    assert len(ax.lines) == 51
    mean = ax.lines[-1]
    others = (X @ [1.0, 0.0, 0.5] + 3.0).mean()
    np.testing.assert_allclose(mean.get_ydata(), others - 2.0 * mean.get_xdata())
    assert mean.get_xdata()[[0, -1]] == pytest.approx([X[:, 1].min(), X[:, 1].max()])
    deciles = [segment[0, 0] for segment in ax.collections[0].get_segments()]
    np.testing.assert_allclose(deciles, np.quantile(X[:, 1], np.linspace(0.1, 0.9, 9)))
    assert ax.get_xlabel() == "size"


def test_partial_dependence_of_a_model_and_of_probabilities() -> None:
    model = tiny_model(2)
    inputs = DATA[0].copy()
    ax = plot_partial_dependence(model, inputs, 0, grid=[0.0, 1.0])
    for place, value in enumerate((0.0, 1.0)):
        inputs[:, 0] = value
        mean, _ = model.predict_y(inputs)
        assert ax.lines[-1].get_ydata()[place] == pytest.approx(float(np.mean(mean)))

    classifier = LogisticRegression().fit(X, X[:, 0] > 0.0)
    rising = plot_partial_dependence(classifier, X, 0).lines[-1].get_ydata()
    falling = plot_partial_dependence(classifier, X, 0, output=0).lines[-1].get_ydata()
    assert (np.diff(rising) > 0.0).all()
    np.testing.assert_allclose(rising + falling, 1.0)


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        (X[0], {"feature": 0}, r"X must have shape \[N, D\]"),
        (X[:0], {"feature": 0}, r"X must have shape \[N, D\]"),
        (X, {"feature": 3}, "feature must be less than 3, got 3"),
        (X, {"feature": -1}, "feature must be an integer of at least 0"),
        (X, {"feature": 0, "num_rows": 0}, "num_rows must be a positive integer"),
    ],
)
def test_refuses_partial_dependence(
    inputs: np.ndarray, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plot_partial_dependence(LinearRegression().fit(X, X[:, 0]), inputs, **options)


def test_refuses_what_is_no_model() -> None:
    with pytest.raises(ValueError, match="model must be a model or an estimator, got str"):
        plot_partial_dependence("model", X, 0)


def test_refuses_relevance_of_what_is_no_model() -> None:
    with pytest.raises(ValueError, match="model must be an instance of VariationalModel, got str"):
        plot_relevance("model")  # type: ignore[arg-type]
