"""Factor models, and factor analysis of a stream of vectors."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from gpflow_dwp.iterates import FactorModel, OnlineEM, OnlineGradientAscent, observe_all


def stream(dimension: int, count: int, seed: int) -> np.ndarray:
    """Vectors of three factors, at right angles, and noise."""
    rng = np.random.default_rng(seed)
    directions, _ = np.linalg.qr(rng.normal(size=(dimension, 3)))
    factors = directions * np.sqrt(rng.uniform(3.0, 9.0, 3))
    noise = np.sqrt(rng.uniform(0.2, 1.0, dimension)) * rng.normal(size=(count, dimension))
    return rng.normal(size=dimension) + rng.normal(size=(count, 3)) @ factors.T + noise


ALGORITHMS = [OnlineEM(3, warm_up=10), OnlineGradientAscent(3, warm_up=10)]


@pytest.fixture(scope="module")
def observations() -> np.ndarray:
    return stream(7, 200, seed=2)


def _algorithm_2(
    observations: np.ndarray, factors: np.ndarray, warm_up: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Online EM as it is printed, with matrices of D by D."""
    dimension, rank = factors.shape
    noise, mean = np.eye(dimension), np.zeros(dimension)
    cross, latent, square = np.zeros((dimension, rank)), np.zeros((rank, rank)), 0.0
    for step, observation in enumerate(observations, start=1):
        mean = mean + (observation - mean) / step
        deviation = observation - mean
        sigma = np.linalg.inv(np.eye(rank) + factors.T @ np.linalg.inv(noise) @ factors)
        m = sigma @ factors.T @ np.linalg.inv(noise) @ deviation
        latent = latent + (np.outer(m, m) - latent) / step
        h = sigma + latent
        cross = cross + (np.outer(deviation, m) - cross) / step
        square = square + (deviation**2 - square) / step
        if step > warm_up:
            factors = cross @ np.linalg.inv(h)
            full = np.diag(square) - 2.0 * factors @ cross.T + factors @ h @ factors.T
            noise = np.diag(np.diag(full))
    return mean, factors, np.diag(noise)


def test_em_is_the_printed_algorithm(observations: np.ndarray) -> None:
    algorithm = OnlineEM(3, warm_up=20)
    state = algorithm.init(7, seed=4)
    expected = _algorithm_2(observations, np.asarray(state.factors), warm_up=20)

    model = algorithm.model(observe_all(algorithm, state, tf.constant(observations)))
    for part, other in zip(model, expected, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-9)


def test_gradients_are_those_of_the_marginal_likelihood(observations: np.ndarray) -> None:
    algorithm = OnlineGradientAscent(3, learning_rate=0.5, warm_up=0)
    start = algorithm.init(7, seed=1)
    rng = np.random.default_rng(0)
    state = start._replace(
        num_observations=tf.constant(4, tf.int64),
        mean=tf.constant(rng.standard_normal(7)),
        log_variances=tf.constant(0.3 * rng.standard_normal(7)),
    )
    after = algorithm.update(state, tf.constant(observations[0]))

    with tf.GradientTape() as tape:
        tape.watch([state.factors, state.log_variances])
        model = FactorModel(after.mean, state.factors, tf.exp(state.log_variances))
        density = model.as_distribution().log_prob(observations[0])
    gradients = tape.gradient(density, [state.factors, state.log_variances])
    np.testing.assert_allclose((after.factors - state.factors) / 0.5, gradients[0], rtol=1e-9)
    change = after.log_variances - state.log_variances
    np.testing.assert_allclose(change / 0.5, gradients[1], rtol=1e-9)


def test_em_in_many_passes_is_as_likely_as_batch_factor_analysis(observations: np.ndarray) -> None:
    decomposition = pytest.importorskip("sklearn.decomposition")
    batch = decomposition.FactorAnalysis(3, svd_method="lapack", tol=1e-8, max_iter=5_000)
    best = batch.fit(observations).score(observations)

    # Averages of every pass forget those before it, which were made with other factors.
    algorithm = OnlineEM(3, warm_up=100)
    start = state = algorithm.init(7)
    likelihoods = []
    for number in range(40):
        restart = start._replace(factors=state.factors, variances=state.variances)
        state = observe_all(algorithm, restart, tf.constant(observations))
        if number in (0, 39):
            densities = algorithm.model(state).as_distribution().log_prob(observations)
            likelihoods.append(float(tf.reduce_mean(densities)))
    assert likelihoods[0] < best - 0.1
    assert best - 0.01 < likelihoods[-1] <= best + 1e-6


def test_em_has_as_many_factors_as_it_warms_up_with() -> None:
    algorithm = OnlineEM(3, warm_up=3)
    factors = algorithm.model(
        observe_all(algorithm, algorithm.init(20), stream(20, 2_000, seed=0))
    ).factors

    lengths = np.linalg.svd(factors, compute_uv=False)
    assert lengths[-1] > 0.3 * lengths[0]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: type(algorithm).__name__)
class TestEveryAlgorithm:
    def test_mean_start_and_warm_up(self, algorithm: Any, observations: np.ndarray) -> None:
        """Catches factors that move in the warm-up, or do not start orthonormal."""
        start = algorithm.init(7, seed=3)
        gram = tf.matmul(start.factors, start.factors, transpose_a=True)
        np.testing.assert_allclose(gram, np.eye(3), atol=1e-12)
        with pytest.raises(ValueError, match="dimension must be an integer of at least 3, got 2"):
            algorithm.init(2)
        warm = observe_all(algorithm, start, tf.constant(observations[:10]))
        np.testing.assert_array_equal(warm.factors, start.factors)
        with pytest.raises(ValueError, match="must be below the number of vectors seen, 10"):
            algorithm.model(warm)
        after = algorithm.update(warm, tf.constant(observations[10]))
        assert np.all(after.factors != start.factors)
        algorithm.model(after)
        state = observe_all(algorithm, after, tf.constant(observations[11:]))
        np.testing.assert_allclose(state.mean, observations.mean(axis=0))
        assert int(state.num_observations) == 200

    def test_no_matrix_of_dimension_squared(self, algorithm: Any) -> None:
        start = algorithm.init(50)
        graph = (
            tf.function(algorithm.update, autograph=False)
            .get_concrete_function(start, start.mean)
            .graph
        )

        sizes = [
            output.shape.num_elements()
            for operation in graph.get_operations()
            for output in operation.outputs
        ]
        assert all(size is not None and size <= 50 * 3 for size in sizes)

    def test_constant_vectors_do_no_harm(self, algorithm: Any) -> None:
        state = observe_all(algorithm, algorithm.init(7), tf.ones([500, 7], tf.float64))

        model = algorithm.model(state)
        assert all(np.all(np.isfinite(part)) for part in model)
        assert np.all(model.variances >= 1e-6)

    def test_float32(self, algorithm: Any, observations: np.ndarray) -> None:
        start = algorithm.init(7)
        double = observe_all(algorithm, start, tf.constant(observations))
        gpflow.config.set_default_float(np.float32)
        assert algorithm.init(7).factors.dtype == tf.float32
        start = algorithm.init(7)._replace(factors=tf.cast(start.factors, tf.float32))

        single = observe_all(algorithm, start, tf.constant(observations, tf.float32))
        np.testing.assert_allclose(single.mean, double.mean, rtol=1e-4, atol=1e-5)

    def test_observations_of_any_kind_one_by_one(self, algorithm: Any) -> None:
        """Also catches a compiled loop that differs from eager updates."""
        whole = np.arange(21).reshape(3, 7) % 5
        expected = observe_all(algorithm, algorithm.init(7), tf.constant(whole, tf.float64))

        for given in (whole.tolist(), whole, tf.constant(whole, tf.float32)):
            one_by_one = algorithm.init(7)
            for observation in given:
                one_by_one = algorithm.update(one_by_one, observation)
            for part, other in zip(one_by_one, expected, strict=True):
                np.testing.assert_allclose(part, other, rtol=1e-9, atol=1e-12)

    def test_observations_that_are_refused(self, algorithm: Any) -> None:
        state, bad = algorithm.init(7), np.full((3, 7), np.nan)
        with pytest.raises(ValueError, match=r"observations must have shape \(None, 7\), got \("):
            observe_all(algorithm, state, np.ones((3, 1)))
        compiled = tf.function(algorithm.update, autograph=False)
        for update in (algorithm.update, compiled):
            with pytest.raises(
                ValueError, match=r"observations must have shape \(7,\), got \(1,\)"
            ):
                update(state, tf.ones(1, tf.float64))
        with pytest.raises(ValueError, match="observations must be finite"):
            observe_all(algorithm, state, bad)


def test_settings_are_checked() -> None:
    for kind, settings, message in (
        (OnlineEM, {"rank": 0}, "rank must be a positive integer, got 0"),
        (OnlineEM, {"warm_up": 1}, "warm_up must be at least rank, 2, got 1"),
        (OnlineGradientAscent, {"warm_up": -1}, "warm_up must be an integer of at least"),
        (OnlineEM, {"minimum_variance": 0.0}, "minimum_variance must be a positive"),
        (OnlineGradientAscent, {"learning_rate": 0.0}, "learning_rate must be a posit"),
    ):
        with pytest.raises(ValueError, match=message):
            kind(**{"rank": 2, **settings})


def test_density_and_samples_are_those_of_the_dense_gaussian() -> None:
    """Moments within five standard errors, sqrt((c_ii c_jj + c_ij²) / n) of covariances."""
    rng = np.random.default_rng(3)
    model = FactorModel(rng.normal(size=6), rng.normal(size=(6, 2)), rng.uniform(0.5, 4.0, 6))
    covariance = np.diag(model.variances) + model.factors @ np.transpose(model.factors)
    dense, points = scipy.stats.multivariate_normal(model.mean, covariance), rng.normal(size=(5, 6))

    np.testing.assert_allclose(model.covariance(), covariance)
    np.testing.assert_allclose(model.as_distribution().log_prob(points), dense.logpdf(points))
    num, diagonal = 40_000, np.diag(covariance)
    samples = np.asarray(model.sample(num, seed=1))
    errors = np.sqrt((np.outer(diagonal, diagonal) + covariance**2) / num)
    assert samples.shape == (num, 6)
    assert np.all(np.abs(np.cov(samples.T) - covariance) < 5.0 * errors)
    assert np.all(np.abs(samples.mean(0) - model.mean) < 5.0 * np.sqrt(diagonal / num))
    with pytest.raises(ValueError, match="num_samples must be a positive integer, got 0"):
        model.sample(0)
