"""The interface of Bayesian-optimisation libraries: shapes, raw units, functions that persist."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.models import build_deep_wishart_process
from gpflow_dwp.serving import BayesianOptimizationModel


class Observed(NamedTuple):
    """What a library hands over."""

    query_points: np.ndarray
    observations: np.ndarray


def observed(num: int, num_outputs: int = 1, seed: int = 0) -> Observed:
    """A function of two inputs in units far from standardised ones."""
    X = np.random.default_rng(seed).uniform(0.0, 10.0, (num, 2))
    Y = 50.0 * np.sin(X[:, :1]) + X[:, 1:] * np.arange(1, num_outputs + 1)
    return Observed(X, 1e3 + Y)


BUILD = partial(build_deep_wishart_process, depth=2, num_inducing=10)
POINTS = observed(6, seed=1).query_points


def make(num_outputs: int = 1, depth: int = 2) -> BayesianOptimizationModel:
    build, data = partial(BUILD, depth=depth), observed(15, num_outputs)
    return BayesianOptimizationModel(build, data, num_steps=2, num_samples=7)


@pytest.fixture(scope="module")
def model() -> BayesianOptimizationModel:
    """Two outputs; no test changes it."""
    return make(num_outputs=2)


def test_predictions_are_those_of_the_model_in_raw_units(model: BayesianOptimizationModel) -> None:
    data = observed(15, 2)
    X = (POINTS - data.query_points.mean(0)) / data.query_points.std(0)
    scale = data.observations.std(0)
    posterior = model.model.posterior(7, seed=0)

    for mine, its in ((model.predict, "predict_f"), (model.predict_y, "predict_y")):
        mean, variance = mine(POINTS)
        expected = getattr(posterior, its)(X)
        np.testing.assert_allclose(
            mean, data.observations.mean(0) + scale * expected[0], rtol=1e-10
        )
        np.testing.assert_allclose(variance, scale**2 * expected[1], rtol=1e-8)


@pytest.mark.parametrize("leading", [(), (2, 1)])
def test_any_leading_axes(model: BayesianOptimizationModel, leading: tuple[int, ...]) -> None:
    X = np.broadcast_to(POINTS[:3], (*leading, 3, 2))
    mean, variance = model.predict(X)
    joint_mean, covariance = model.predict_joint(X)

    assert mean.shape == variance.shape == joint_mean.shape == (*leading, 3, 2)
    assert covariance.shape == (*leading, 2, 3, 3)
    assert model.sample(X, 4).shape == (*leading, 4, 3, 2)
    whole = model.predict(POINTS[:3])
    np.testing.assert_allclose(mean, np.broadcast_to(whole[0], mean.shape), rtol=1e-10)
    np.testing.assert_allclose(variance, np.broadcast_to(whole[1], mean.shape), rtol=1e-10)


def test_gradients_are_those_of_the_predictions(model: BayesianOptimizationModel) -> None:
    points = tf.constant(POINTS)
    step = 1e-5 * np.array([[1.0, -2.0]])

    for method in (model.predict, model.predict_y):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(points)
            sums = [tf.reduce_sum(moment) for moment in method(points)]
        ahead, behind = method(points + step), method(points - step)
        for total, one, other in zip(sums, ahead, behind, strict=True):
            slope = tf.reduce_sum(tape.gradient(total, points) * step)
            difference = 0.5 * (tf.reduce_sum(one) - tf.reduce_sum(other))
            np.testing.assert_allclose(difference, slope, rtol=1e-5)


def test_trajectories_are_functions(model: BayesianOptimizationModel) -> None:
    trajectory = model.trajectory_sampler().get_trajectory()
    X = np.stack([POINTS, POINTS[::-1], POINTS], axis=1)

    values = trajectory(X)

    assert values.shape == (6, 3, 2)
    np.testing.assert_array_equal(trajectory(X), values)
    np.testing.assert_allclose(trajectory(X[2:4]), values[2:4], rtol=1e-9)
    # Three different functions.
    assert np.abs(values[:, 0] - values[:, 2]).max() > 1.0
    assert np.abs(values[:, 0] - values[::-1, 1]).max() > 1.0

    # Libraries compile with autograph, also the first call.
    other, first = model.trajectory_sampler().get_trajectory(), tf.constant(POINTS[:, None])
    compiled = tf.function(lambda x: other(x))(first)
    np.testing.assert_allclose(other(first), compiled, rtol=1e-9)


def test_update_does_not_train_optimize_does_from_scratch_and_compiled_code_follows() -> None:
    model, X, more = make(depth=1), tf.constant(POINTS), observed(25)

    @tf.function
    def predictions(X: tf.Tensor) -> tuple[tf.Tensor, ...]:
        samples = model.sample(X, 2)
        assert samples.shape == (2, 6, 1)
        return *model.predict(X), *model.predict_joint(X)

    before = [part.numpy() for part in predictions(X)]
    model.update(more)
    np.testing.assert_array_equal(model.predict(POINTS)[0], before[0])
    assert model.model.num_data == 25
    trained = []
    tf.config.run_functions_eagerly(True)  # for two steps
    try:
        for _ in range(2):
            assert model.optimize(more).num_steps == 2
            trained.append(model.predict(POINTS)[0].numpy())
    finally:
        tf.config.run_functions_eagerly(False)
    assert model.model.num_data == 25
    assert np.abs(trained[0] - before[0]).max() > 1.0
    np.testing.assert_array_equal(*trained)
    # The noise is in raw units.
    variance = model.predict_y(POINTS)[1] - model.predict(POINTS)[1]
    noise = np.broadcast_to(model.get_observation_noise(), (6, 1))
    np.testing.assert_allclose(variance, noise, rtol=1e-6)

    after, expected = predictions(X), (*model.predict(X), *model.predict_joint(X))
    for value, wanted, old in zip(after, expected, before, strict=True):
        assert value.shape == wanted.shape
        np.testing.assert_allclose(value, wanted, rtol=1e-9)
        assert np.abs(value - old).max() > 1e-3
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        one, other = model.predict(X)[0], tf.function(lambda X: model.predict(X)[0])(X)
    np.testing.assert_allclose(tape.gradient(other, X), tape.gradient(one, X), rtol=1e-9)


def test_a_model_of_warped_observations_is_refused() -> None:
    """Catches moments of functions that are in no unit."""
    build = partial(build_deep_wishart_process, depth=1, likelihood="warped")
    with pytest.raises(ValueError, match=r"build must return .* not warped"):
        BayesianOptimizationModel(build, observed(5))


def test_trieste_optimises_with_it() -> None:
    """Against Trieste itself: expected improvement, then functions drawn by Thompson sampling."""
    trieste = pytest.importorskip("trieste")
    space = trieste.space.Box([0.0, 0.0], [1.0, 1.0])
    observer = trieste.objectives.utils.mk_observer(
        lambda x: tf.reduce_sum((x - 0.3) ** 2, axis=-1, keepdims=True)
    )
    seen = observer(space.sample_halton(8))
    optimizer = trieste.bayesian_optimizer.BayesianOptimizer(observer, space)
    thompson = trieste.acquisition.rule.EfficientGlobalOptimization(
        trieste.acquisition.ParallelContinuousThompsonSampling(), num_query_points=2
    )
    for rule, num_new in ((None, 1), (thompson, 2)):
        model = BayesianOptimizationModel(BUILD, seen, num_steps=5, num_samples=10)
        arguments = () if rule is None else (rule,)
        result = optimizer.optimize(1, seen, model, *arguments).try_get_final_dataset()
        assert len(result.observations) == 8 + num_new
        assert np.all((result.query_points >= 0.0) & (result.query_points <= 1.0))
