"""Predictions: a mixture over draws, coherent functions, and batches that change nothing."""

from __future__ import annotations

from typing import Any

import gpflow
import model_reference
import numpy as np
import pytest
import tensorflow as tf
from gpflow import likelihoods as gl
from model_reference import tiny_model, toy_data
from scipy import special, stats

from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network
from gpflow_dwp.models import DeepWishartProcess, build_deep_wishart_process

DATA = toy_data(num_outputs=2)
XNEW, YNEW = toy_data(7, num_outputs=2, seed=5)
MANY = 20_000


@pytest.fixture(scope="module")
def model() -> DeepWishartProcess:
    """Depth 3, two outputs; no test changes it."""
    return tiny_model(3, data=DATA, num_inducing=4)


def test_gram_matrices_at_new_inputs_are_those_below_joint_predictions(
    model: DeepWishartProcess,
) -> None:
    """Catches matrices that are drawn anew: of all points at once they hold the inducing ones."""
    posterior, Z = model.posterior(6, seed=0), model.inducing_variable.Z.numpy()

    grams = posterior.gram_matrices(np.vstack([Z, XNEW]))

    assert [gram.shape for gram in grams] == [(6, 11, 11)] * 2
    for gram, inducing in zip(grams, posterior.gram_matrices(), strict=True):
        np.testing.assert_allclose(gram[:, :4, :4], inducing, atol=0.02)  # the jitter's noise
    output, gram = model.output_layer, grams[-1].numpy()
    diagonal = np.einsum("snn->sn", gram)
    squares = diagonal[:, :, None] + diagonal[:, None] - 2.0 * gram
    K = output.kernel.variance * np.exp(-0.5 * squares / output.kernel.lengthscales.numpy() ** 2)
    K_ii, K_it = K[:, :4, :4], K[:, :4, 4:]
    draw = output.infer_inducing(tf.constant(K_ii))
    means = tf.matmul(K_it, draw.weights, transpose_a=True).numpy()
    joint = posterior.predict_f(np.vstack([Z, XNEW]), full_cov=True)[0]
    np.testing.assert_allclose(means.mean(0), joint[4:], atol=0.02)


def test_mixed_outputs_are_drawn_as_they_covary() -> None:
    """Catches draws, or covariances, in which outputs that share a function are independent."""
    X, Y = toy_data()
    kernels = [gpflow.kernels.SquaredExponential(), gpflow.kernels.Matern12(lengthscales=0.1)]
    kernel = gpflow.kernels.LinearCoregionalization(kernels, W=np.ones((3, 2)))
    model = build_deep_wishart_process((X, np.hstack([Y, -Y, Y])), 1, kernel=[kernel])
    model.output_layer.mixing.assign([[1.0, 0.3], [-2.0, 0.2], [0.5, 0.0]])

    for full_cov in (False, True):
        posterior = model.posterior(MANY, seed=0)
        samples = posterior.sample_f(XNEW[:2], full_cov).numpy().reshape(MANY, 6)
        _, of_functions = posterior._propagate(tf.constant(XNEW[:2]), full_cov=True, mixed=False)
        W = model.output_layer.mixing.numpy()
        covariance = np.einsum("pl,lnm,ql->npmq", W, of_functions[0], W).reshape(6, 6)
        if not full_cov:
            covariance *= np.kron(np.eye(2), np.ones((3, 3)))
        error = 5.0 * np.sqrt(2.0 / MANY) * np.sqrt(np.outer(*[np.diag(covariance)] * 2))
        assert np.all(np.abs(np.cov(samples.T) - covariance) < error)


def test_predictions_are_those_of_the_mixture(model: DeepWishartProcess) -> None:
    posterior = model.posterior(6, seed=0)
    mean, variance = posterior.predict_y(XNEW)
    log_densities = posterior.predict_log_density((XNEW, YNEW))

    noise_variance = model.likelihood.variance.numpy()
    means, variances = (part.numpy() for part in posterior.predict_f_components(XNEW))
    np.testing.assert_allclose(mean, means.mean(0), atol=1e-12)
    expected = variances.mean(0) + noise_variance + means.var(0)
    np.testing.assert_allclose(variance, expected, atol=1e-12)
    y_means, y_variances = posterior.predict_warped_components(XNEW)
    np.testing.assert_allclose(y_means, means, atol=1e-12)
    np.testing.assert_allclose(y_variances, variances + noise_variance, atol=1e-12)
    within = stats.norm.logpdf(YNEW, means, np.sqrt(variances + noise_variance)).sum(axis=-1)
    expected = special.logsumexp(within, axis=0) - np.log(6.0)
    np.testing.assert_allclose(log_densities, expected, atol=1e-10)


def test_sampled_functions_have_the_predicted_covariance(model: DeepWishartProcess) -> None:
    X = XNEW[:3]
    mean, covariance = model.predict_f(X, full_cov=True, num_samples=MANY)

    samples = model.predict_f_samples(X, MANY, seed=1).numpy()

    # 5 sigma; predictions have a Monte Carlo error of their own, at most that of the samples.
    deviations = samples - mean.numpy()
    products = np.einsum("snq,smq->sqnm", deviations, deviations)
    k_sigma = 5.0 * np.sqrt(2.0)
    model_reference.assert_same_mean(samples, mean.numpy(), k_sigma)
    model_reference.assert_same_mean(products, covariance.numpy(), k_sigma)


@pytest.mark.parametrize("build", ["wishart", "inverse_wishart"])
def test_points_by_themselves_and_jointly_have_one_limit(build: str) -> None:
    posterior = tiny_model(2, build, num_inducing=3).posterior(MANY, seed=0)
    X = XNEW[:2]

    mean, variance = posterior.predict_f(X)
    joint_mean, covariance = posterior.predict_f(X, full_cov=True)

    means, variances = (part.numpy() for part in posterior.predict_f_components(X))
    spreads = means, variances + (means - mean) ** 2
    joint_variance = tf.transpose(tf.linalg.diag_part(covariance))
    pairs = ((mean, joint_mean), (variance, joint_variance))
    for spread, (own, joint) in zip(spreads, pairs, strict=True):
        # 5 sigma of a difference, were the two estimates independent.
        standard_error = np.std(spread, axis=0) / np.sqrt(MANY)
        assert np.all(np.abs(own - joint) < 5.0 * np.sqrt(2.0) * standard_error)
        assert np.all(own != joint)


def test_internal_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model(2, data=DATA, num_inducing=4)

    def predict() -> list[Any]:
        posterior = model.posterior(6, seed=0)
        return [
            *posterior.predict_f(XNEW),
            *posterior.predict_y(XNEW),
            *posterior.predict_f_components(XNEW),
            *posterior.predict_warped_components(XNEW),
            posterior.predict_log_density((XNEW, YNEW)),
        ]

    whole = predict()
    monkeypatch.setattr("gpflow_dwp.models.mixture_posterior._MAX_BLOCK_SIZE", 50)

    for value, expected in zip(predict(), whole, strict=True):
        assert value.shape == expected.shape
        np.testing.assert_allclose(value, expected, atol=1e-12)


LABELS = DATA[0], np.arange(12)[:, None] % 3.0
SMOOTH: dict[str, Any] = {
    "processes": lambda: tiny_model(3, data=DATA, num_inducing=4),
    "latent variables": lambda: build_latent_variable_deep_gp(DATA, "LV-GP-GP", num_inducing=4),
    "network": lambda: build_matrix_gaussian_network(
        DATA, 2, width=4, num_pseudo_data=2, activation="tanh"
    ),
    "sampled expectations": lambda: tiny_model(2, data=LABELS, likelihood=gl.Softmax(3)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_predictions_are_one_smooth_function_of_the_point_that_a_posterior_keeps(name: str) -> None:
    """Catches random numbers that follow a point's digits: differences then are not derivatives.

    And old draws with new kernels, layers or likelihoods: no model's predictions.
    """
    model, X = SMOOTH[name](), tf.Variable(XNEW)
    model_reference.randomise(model, seed=1, scale=0.1)
    posterior = model.posterior(4, seed=0)
    labels = YNEW if name != "sampled expectations" else np.arange(7)[:, None] % 3.0

    def total() -> tf.Tensor:
        moments = posterior.predict_f(X)[0], posterior.predict_y(X)[1]
        parts = *moments, posterior.predict_log_density((X, labels))
        return tf.add_n([tf.reduce_sum(part) for part in parts])

    model_reference.assert_gradients_are_finite_differences(total, [X], 1e-4)

    def predictions() -> list[np.ndarray]:
        parts = *posterior.predict_y(XNEW), *posterior.predict_f(XNEW, full_cov=True)
        return [part.numpy() for part in parts]

    before = predictions()
    for variable in model.trainable_variables:
        variable.assign(variable + 0.3)
    np.testing.assert_equal(predictions(), before)
    assert not np.allclose(model.posterior(4, seed=0).predict_y(XNEW)[0], before[0])


def test_joint_predictions_that_do_not_fit_are_refused(model: DeepWishartProcess) -> None:
    """Catches an allocator that gives up without a word of what would do instead."""
    X = np.zeros((1_000_000, 2))

    for predict in (model.predict_f_samples, lambda X: model.predict_f(X, full_cov=True)):
        with pytest.raises(ValueError, match=r"rows_of_Xnew .* GiB.* full_cov=False takes no"):
            predict(X)


def test_rows_without_observations_have_no_log_density(model: DeepWishartProcess) -> None:
    """Catches zeros, with which a mean over rows is too good."""
    some = np.where([[True, True], [True, False]] + 5 * [[False, False]], np.nan, YNEW)

    densities = model.predict_log_density((XNEW, some), num_samples=3)
    np.testing.assert_array_equal(np.isnan(densities), [True] + 6 * [False])


def test_covariances_of_observations_are_not_offered(model: DeepWishartProcess) -> None:
    posterior = model.posterior(1, seed=0)
    for option in ({"full_cov": True}, {"full_output_cov": True}):
        with pytest.raises(NotImplementedError):
            posterior.predict_y(XNEW, **option)
        with pytest.raises(NotImplementedError):
            posterior.predict_log_density((XNEW, YNEW), **option)
    with pytest.raises(NotImplementedError):
        posterior.predict_f(XNEW, full_output_cov=True)
