"""Second implementations of layers and models: dense NumPy, one draw at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import gpflow
import numpy as np
import reference
import tensorflow as tf
from scipy import special

from gpflow_dwp.layers import GlobalInducingGPLayer, WishartLayer
from gpflow_dwp.models import DeepWishartProcess, build_deep_wishart_process

SIZES = [(4, 2), (3, 3), (3, 5)]
"""(M, df): singular, square, and df > M."""

FAMILIES = ["GW", "A", "AB"]


class NumPyDraw(NamedTuple):
    """One draw of one hidden layer."""

    inducing_features: np.ndarray
    target_features: np.ndarray
    log_ratio: float


def randomise(module: tf.Module, seed: int, scale: float = 0.3) -> None:
    """Move every parameter away from its starting value."""
    rng = np.random.default_rng(seed)
    for variable in module.trainable_variables:
        variable.assign_add(scale * rng.standard_normal(variable.shape))


def set_to_prior(layer: WishartLayer, proportion: float = 1e-13) -> None:
    """Make the posterior of a layer its prior."""
    factor = layer.bartlett_factor
    for name, value in reference.wishart_bartlett(layer.num_inducing, layer.df).items():
        getattr(factor, name).assign(value)
    if factor.packed_row_mixing is not None:
        factor.packed_row_mixing.assign(np.zeros((layer.num_inducing, layer.num_inducing)))
    if factor.column_mixing_tril is not None:
        factor.column_mixing_tril.assign(np.eye(factor.rank))
    if layer.scale_mixture is not None:
        layer.scale_mixture.proportion.assign(proportion)


def make_layer(
    size: int, df: int, family: Any = "AB", whiten: bool = False, **arguments: Any
) -> WishartLayer:
    """A Wishart layer with random parameters; its log ratio is sampled unless asked otherwise."""
    arguments = {"expected_log_ratio": False, **arguments}
    kernel = gpflow.kernels.SquaredExponential()
    layer = WishartLayer(kernel, df, size, family, whiten, seed=0, **arguments)
    randomise(layer, seed=1)
    return layer


def random_covariance(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Covariance matrices, well conditioned."""
    root = rng.normal(size=(*shape, shape[-1]))
    return root @ np.swapaxes(root, -1, -2) / shape[-1] + 0.5 * np.eye(shape[-1])


def toy_data(num: int = 12, num_outputs: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with two columns and a smooth function of them with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num, 2))
    weights = rng.normal(size=(2, num_outputs))
    return X, np.sin(2.0 * X @ weights) + 0.1 * rng.normal(size=(num, num_outputs))


def tiny_model(depth: int = 2, **arguments: Any) -> DeepWishartProcess:
    """A model of the toy data with random parameters."""
    data = arguments.pop("data", None) or toy_data()
    arguments = {"num_inducing": 5, "num_samples": 3, **arguments}
    model = build_deep_wishart_process(data, depth, **arguments)
    randomise(model, seed=2, scale=0.1)
    return model


def numpy_mixing(layer: WishartLayer) -> tuple[np.ndarray, np.ndarray]:
    """A' and B of a layer's posterior, from its parameters."""
    factor = layer.bartlett_factor
    row_mixing, column_mixing = np.eye(layer.num_inducing), np.eye(factor.rank)
    if factor.packed_row_mixing is not None:
        packed = factor.packed_row_mixing.numpy()
        lower = np.tril(packed, -1) + np.eye(len(packed))
        upper = np.triu(packed, 1) + np.diag(np.exp(np.diag(packed)))
        row_mixing = lower @ upper
    if factor.column_mixing_tril is not None:
        column_mixing = factor.column_mixing_tril.numpy()
    return row_mixing, column_mixing


def numpy_bartlett(layer: WishartLayer) -> dict[str, np.ndarray]:
    """The parameters of T."""
    factor = layer.bartlett_factor
    names = ("concentration", "rate", "loc", "scale")
    return {name: getattr(factor, name).numpy() for name in names}


def numpy_row_mixing(layer: WishartLayer, covariance: np.ndarray) -> np.ndarray:
    """A, for one covariance K_ii."""
    size, df = layer.num_inducing, layer.df
    jitter = layer.jitter * np.mean(np.diag(covariance)) * np.eye(size)
    scale = covariance / df
    if layer.scale_mixture is not None:
        mixture = layer.scale_mixture
        q, s = float(mixture.proportion.numpy()), float(mixture.root_scale.numpy())
        V = mixture.root.numpy()
        scale = (1.0 - q) * scale + q * s * V @ V.T / size
    return np.linalg.cholesky(scale + jitter / df) @ numpy_mixing(layer)[0]


def numpy_hidden_layer(
    layer: WishartLayer, covariance: np.ndarray, t: np.ndarray, noise: np.ndarray
) -> NumPyDraw:
    """One draw of a layer, given the covariance over inducing points and then one target each.

    :param covariance: K over the inducing points and all targets, [M + N, M + N].
    :param t: The Bartlett factor, [M, R].
    :param noise: [N, df].
    """
    size, df = layer.num_inducing, layer.df
    rank = min(size, df)
    k_ii = covariance[:size, :size]
    prior_scale = (k_ii + layer.jitter * np.mean(np.diag(k_ii)) * np.eye(size)) / df
    row_mixing = numpy_row_mixing(layer, k_ii)
    column_mixing = numpy_mixing(layer)[1]
    features = np.zeros((size, df))
    features[:, :rank] = row_mixing @ t @ column_mixing
    gram = features @ features.T
    log_ratio = reference.singular_wishart_log_density(gram, prior_scale, df)
    log_ratio -= reference.abgw_log_density(
        gram, df, row_mixing, column_mixing, **numpy_bartlett(layer)
    )

    targets = []
    for n, row in enumerate(noise):
        k_in = covariance[:size, size + n] / df
        mean = k_in @ np.linalg.solve(prior_scale, features)
        variance = covariance[size + n, size + n] / df - k_in @ np.linalg.solve(prior_scale, k_in)
        targets.append(mean + np.sqrt(variance) * row)
    return NumPyDraw(features, np.array(targets), log_ratio)


def numpy_output(
    layer: GlobalInducingGPLayer, k_ii: np.ndarray, k_it: np.ndarray, k_tt: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean [N, Q], variance [N] and KL of the output layer, by explicit inverses."""
    size, num_outputs = layer.num_inducing, layer.num_outputs
    k_ii = k_ii + layer.jitter * np.mean(np.diag(k_ii)) * np.eye(size)
    precision_tril = layer.precision_tril.numpy()
    precision = precision_tril @ precision_tril.T
    k_inverse = np.linalg.inv(k_ii)
    covariance = np.linalg.inv(k_inverse + precision)
    mean_u = covariance @ precision @ layer.pseudo_targets.numpy()
    interpolation = k_inverse @ k_it
    mean = interpolation.T @ mean_u
    variance = k_tt - np.sum(k_it * interpolation, 0)
    variance = variance + np.sum(interpolation * (covariance @ interpolation), 0)
    kl = num_outputs * (np.trace(k_inverse @ covariance) - size)
    kl += np.sum(mean_u * (k_inverse @ mean_u))
    kl += num_outputs * (np.linalg.slogdet(k_ii)[1] - np.linalg.slogdet(covariance)[1])
    return mean, variance, 0.5 * kl


def numpy_elbo_terms(
    model: DeepWishartProcess,
    data: tuple[np.ndarray, np.ndarray],
    bartlett_factors: list[np.ndarray],
    noise: list[np.ndarray],
) -> tuple[float, np.ndarray]:
    """The terms of the bound of a model with a Gaussian likelihood, draw by draw.

    :param bartlett_factors: T of each hidden layer, [S, M, R].
    :param noise: Noise of the targets of each hidden layer, [S, N, df].
    :return: The data's term, and each layer's, [L].
    """
    X, Y = data
    noise_variance = float(model.likelihood.variance.numpy())
    points = np.concatenate([model.inducing_variable.Z.numpy(), X])
    size, num_samples = model.layers[0].num_inducing, len(bartlett_factors[0])
    data_term, log_ratios = 0.0, np.zeros(len(model.layers))
    for s in range(num_samples):
        features = points
        for index, layer in enumerate(model.hidden_layers):
            covariance = layer.kernel(features).numpy()
            draw = numpy_hidden_layer(
                layer, covariance, bartlett_factors[index][s], noise[index][s]
            )
            features = np.concatenate([draw.inducing_features, draw.target_features])
            log_ratios[index] += draw.log_ratio / num_samples
        covariance = model.output_layer.kernel(features).numpy()
        mean, variance, kl = numpy_output(
            model.output_layer,
            covariance[:size, :size],
            covariance[:size, size:],
            np.diag(covariance)[size:],
        )
        log_ratios[-1] -= kl / num_samples
        squares = np.sum((Y - mean) ** 2, 1) + Y.shape[1] * variance
        expectation = -0.5 * Y.shape[1] * np.log(2.0 * np.pi * noise_variance)
        data_term += np.sum(expectation - 0.5 * squares / noise_variance) / num_samples
    return data_term * model.num_data / len(X), log_ratios


def mixture_log_density(Y: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Log density of a mixture of S normal distributions, [N]; all arguments [(S,) N, 1]."""
    log_densities = -0.5 * (np.log(2.0 * np.pi * variances) + (Y - means) ** 2 / variances)
    return special.logsumexp(log_densities.sum(-1), axis=0) - np.log(len(means))


def assert_same_mean(
    first: np.ndarray, second: np.ndarray, k_sigma: float, absolute: float = 1e-12
) -> None:
    """Two samples, or a sample and an exact value, agree in their mean to k standard errors."""
    error = np.var(first, axis=0) / len(first)
    expected = second
    if np.ndim(second) == np.ndim(first):
        error = error + np.var(second, axis=0) / len(second)
        expected = np.mean(second, axis=0)
    difference = np.abs(np.mean(first, axis=0) - expected)
    assert np.all(difference <= k_sigma * np.sqrt(error) + absolute), (
        f"{np.max(difference / (np.sqrt(error) + absolute)):.2f} standard errors"
    )
