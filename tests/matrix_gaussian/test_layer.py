"""The matrix-Gaussian layer against draws of weights, and against GP regression."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from scipy.optimize import minimize
from scipy.special import digamma, gammaln

from gpflow_dwp.matrix_gaussian import MatrixGaussianLayer
from gpflow_dwp.matrix_gaussian.layer import dropout_kl
from gpflow_dwp.random import as_seed, normal

RNG = np.random.default_rng(5)
POINTS, D, Q = 5, 3, 2


def layer(**arguments: object) -> MatrixGaussianLayer:
    """A layer whose covariances are not the identity."""
    result = MatrixGaussianLayer(D, Q, **arguments)  # type: ignore[arg-type]
    for root in (result.row_root, result.column_root):
        root.diagonal.assign(RNG.uniform(0.5, 1.5, root.diagonal.shape))
        if root.family == "rank_one":
            root.direction.assign(RNG.normal(size=root.direction.shape))
    return result


def augmented(X: np.ndarray) -> np.ndarray:
    return np.hstack([X, np.ones((len(X), 1))]) / np.sqrt(D + 1.0)


@pytest.mark.parametrize(("rows", "columns"), [("diagonal", "rank_one"), ("rank_one", "diagonal")])
def test_outputs_have_the_moments_of_products_with_drawn_weights(rows: str, columns: str) -> None:
    part = layer(row_covariance=rows, column_covariance=columns)
    X, count = RNG.normal(size=(POINTS, D)), 200_000
    R, C = part.row_root.operator().to_dense(), part.column_root.operator().to_dense()
    E = RNG.normal(size=(count, D + 1, Q))
    weights = part.mean.numpy() + R.numpy() @ E @ C.numpy().T
    drawn = augmented(X) @ weights
    output = part.propagate(tf.constant(X)[None], 1, as_seed(0))
    noise = normal([count, POINTS, Q], as_seed(1), tf.float64)
    sampled = part.sample(output, noise).numpy()
    deviation = drawn.std(axis=0)
    error = np.abs(sampled.mean(axis=0) - drawn.mean(axis=0))
    np.testing.assert_array_less(error, 6.0 * deviation / np.sqrt(count))
    for draws in (sampled, drawn):
        covariance = np.einsum("sni,snj->nij", draws - draws.mean(0), draws - draws.mean(0)) / count
        exact = output.row_variance.numpy()[0][:, None, None] * (C.numpy() @ C.numpy().T)
        scale = deviation[:, :, None] * deviation[:, None, :]
        np.testing.assert_array_less(np.abs(covariance - exact) / scale, 8.0 / np.sqrt(count))


def test_pseudo_data_condition_as_gp_regression_with_the_linear_kernel() -> None:
    part = layer(num_pseudo_data=2, largest_dropout=1e-12)
    part.pseudo_inputs.assign(RNG.normal(size=(2, D + 1)))
    part.pseudo_outputs.assign(RNG.normal(size=(2, Q)))
    X = RNG.normal(size=(POINTS, D))
    A, M = augmented(X), part.mean.numpy()
    pseudo = part.pseudo_inputs.numpy() / np.sqrt(D + 1.0)
    U = np.diag(part.row_root.diagonal.numpy() ** 2)
    gain = A @ U @ pseudo.T @ np.linalg.inv(pseudo @ U @ pseudo.T + 1e-6 * np.eye(2))
    mean = A @ M + gain @ (part.pseudo_outputs.numpy() - pseudo @ M)
    variance = np.diag(A @ U @ A.T - gain @ pseudo @ U @ A.T)
    output = part.propagate(tf.constant(X)[None], 3, as_seed(0))
    np.testing.assert_allclose(output.mean, np.broadcast_to(mean, [3, POINTS, Q]), atol=1e-4)
    variances = np.broadcast_to(variance, [3, POINTS])
    np.testing.assert_allclose(output.row_variance, variances, rtol=1e-4)


@pytest.mark.parametrize("family", ["diagonal", "rank_one"])
def test_functions_have_the_joint_moments_of_a_kronecker_product(family: str) -> None:
    families = {"row_covariance": family, "column_covariance": family}
    part = layer(**families, num_pseudo_data=2, largest_dropout=1e-12)
    part.pseudo_inputs.assign(RNG.normal(size=(2, D + 1)))
    part.pseudo_outputs.assign(RNG.normal(size=(2, Q)))
    X, count = tf.constant(RNG.normal(size=(1, POINTS, D))), 100_000
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.1)):
        output = part.propagate(X, 1, as_seed(0), full_cov=True)
        drawn = part.sample_functions(X, count, as_seed(1)).numpy().reshape([count, -1])
    C = part.column_root.operator().to_dense().numpy()
    covariance = np.kron(output.row_variance[0], C @ C.T)
    deviation = np.sqrt(np.diag(covariance))
    error = np.abs(drawn.mean(axis=0) - output.mean.numpy().reshape(-1))
    np.testing.assert_array_less(error, 6.0 * deviation / np.sqrt(count))
    error = np.abs(np.cov(drawn.T) - covariance) / np.outer(deviation, deviation)
    np.testing.assert_array_less(error, 8.0 / np.sqrt(count))


@pytest.mark.parametrize("zero_mean", [False, True])
def test_more_pseudo_data_than_inputs(zero_mean: bool) -> None:
    """Catches a limit: the kernel of rank D + 1 has jitter on its diagonal."""
    part = layer(num_pseudo_data=D + 3, zero_mean=zero_mean)
    output = part.propagate(tf.constant(RNG.normal(size=(1, POINTS, D))), 2, as_seed(0))
    assert (part.mean is None) == zero_mean and output.mean.shape == (2, POINTS, Q)
    assert np.all(np.isfinite(output.mean)) and np.all(output.row_variance > 0.0)
    assert np.isfinite(part.kl_divergence())


def test_means_start_as_he_et_al_have_them() -> None:
    """Catches a variance over the wrong number of inputs, and biases that do not start at 0."""
    part = MatrixGaussianLayer(50, 400)
    start = part.mean.numpy() / np.sqrt(51.0)
    np.testing.assert_array_equal(start[-1], 0.0)
    np.testing.assert_allclose(start[:-1].var(), 2.0 / 50.0, rtol=0.05)


def test_bad_arguments_are_refused() -> None:
    for name, value, message in (
        ("largest_dropout", 0.0, "largest_dropout must be a positive number, got 0.0"),
        ("largest_dropout", 1.5, "largest_dropout must be above 0"),
        ("row_covariance", "dense", "row_covariance must be one of diagonal, rank_one"),
    ):
        with pytest.raises(ValueError, match=message):
            MatrixGaussianLayer(D, Q, **{name: value})  # type: ignore[arg-type]


def test_precisions_have_the_best_posteriors() -> None:
    """Catches wrong closed forms: no rates of q(τ_r) and q(τ_c) have a smaller divergence."""
    part, fixed = layer(learn_precision=True), layer()
    for mine, other in zip(fixed.parameters, part.parameters, strict=True):
        mine.assign(other)
    a = 1.0 + 0.5 * (D + 1) * Q
    R, C = (each.diagonal.numpy() for each in (part.row_root, part.column_root))
    squares = np.sum(R**2) * np.sum(C**2) + np.sum(part.mean.numpy() ** 2)

    def divergence(log_rates: np.ndarray) -> float:
        b = np.exp(log_rates)
        of_precisions = (a - 1.0) * digamma(a) - gammaln(a) + np.log(2.0 * b) + a * (0.5 - b) / b
        more = 0.5 * (np.prod(a / b) - 1.0) * squares  # than where both precisions are 1
        mean_log = np.sum(digamma(a) - np.log(b))
        of_weights = fixed.kl_divergence() + more - 0.5 * (D + 1) * Q * mean_log
        return float(of_weights + of_precisions.sum())

    np.testing.assert_allclose(part.kl_divergence(), minimize(divergence, [3.0, 0.0]).fun)


def test_dropout_divergence_is_that_of_numerical_integration() -> None:
    # For N(θ, α θ²) and the log-uniform prior: KL = const - ½ log α + ½ E log(1 + √α ε)²
    # (Kingma, Salimans and Welling, 2015, appendix C); the cubic is a fit to it.
    nodes = np.linspace(-12.0, 12.0, 200_001) + 1e-7
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()

    def exact(alpha: float) -> float:
        log_size = np.log(np.abs(1.0 + np.sqrt(alpha) * nodes))
        return float(-0.5 * np.log(alpha) + weights @ log_size)

    for alpha in (0.05, 0.3, 0.8):
        value = float(dropout_kl(tf.constant(alpha, tf.float64), 1.0))
        assert value == pytest.approx(exact(alpha) - exact(1.0), abs=0.02)
