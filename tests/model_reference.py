"""Second implementations of layers and models: dense NumPy, one draw at a time."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import gpflow
import numpy as np
import reference
import tensorflow as tf

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.latent_variable_deep_gp import Encoder
from gpflow_dwp.layers import (
    GlobalInducingGPLayer,
    GlobalInducingGramLayer,
    GramLayer,
    WishartLayer,
)
from gpflow_dwp.models import (
    DeepKernelProcess,
    DeepWishartProcess,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
)
from gpflow_dwp.random import as_seed, normal, normal_at_points, split_seed

BUILDERS: dict[str, Callable[..., Any]] = {
    "wishart": build_deep_wishart_process,
    "gaussian": build_deep_gaussian_process,
    "inverse_wishart": build_deep_inverse_wishart_process,
}
"""Of deep kernel processes."""


def _key(value: Any) -> Any:
    """What says all of an argument; a TypeError where that is not known."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, tuple | list):
        return tuple(_key(part) for part in value)
    if value is None or inspect.isroutine(value) or isinstance(value, str | int | float | type):
        return type(value), value
    raise TypeError(f"a {type(value).__name__} may change")


def copied(make: Callable[..., Any]) -> Callable[..., Any]:
    """Make the same once and give copies of it: a copy takes a tenth of the time.

    But not of what has variables of any shape, of which a copy's variables have one.
    """
    made: dict[Any, Any] = {}

    @functools.wraps(make)
    def copy_of(*args: Any, **arguments: Any) -> Any:
        try:
            given = _key(args), tuple((name, _key(arguments[name])) for name in sorted(arguments))
        except TypeError:
            return make(*args, **arguments)
        key = (*given, gpflow.config.config())
        if key not in made:
            new = make(*args, **arguments)
            if not all(variable.shape.is_fully_defined() for variable in new.variables):
                return new
            made[key] = new
        return copy.deepcopy(made[key])

    return copy_of


def randomise(module: tf.Module, seed: int, scale: float = 0.3) -> None:
    """Move every parameter away from its starting value."""
    rng = np.random.default_rng(seed)
    for variable in module.trainable_variables:
        variable.assign_add(scale * rng.standard_normal(variable.shape))


def set_to_prior(layer: WishartLayer | GlobalInducingGramLayer, proportion: float = 1e-13) -> None:
    """Make the posterior of a layer its prior."""
    if isinstance(layer, GlobalInducingGramLayer):
        layer.precision_tril.assign(1e-7 * np.eye(layer.num_inducing))
        return
    factor = layer.bartlett_factor
    for name, value in reference.wishart_bartlett(layer.num_inducing, layer.df).items():
        getattr(factor, name).assign(value)
    if factor.packed_row_mixing is not None:
        factor.packed_row_mixing.assign(np.zeros((layer.num_inducing, layer.num_inducing)))
    if factor.column_mixing_tril is not None:
        factor.column_mixing_tril.assign(np.eye(factor.rank))
    if layer.scale_mixture is not None:
        layer.scale_mixture.proportion.assign(proportion)


@copied
def make_layer(
    size: int, df: int, family: Any = "AB", whiten: bool = False, **arguments: Any
) -> WishartLayer:
    """A Wishart layer with random parameters; its log ratio is sampled unless asked otherwise.

    A fresh layer's scale is the prior's to 1e-6, which would hide a mistake in its determinant.
    """
    arguments = {"expected_log_ratio": False, **arguments}
    kernel = gpflow.kernels.SquaredExponential()
    layer = WishartLayer(kernel, df, size, family, whiten, seed=0, **arguments)
    randomise(layer, seed=1)
    if layer.scale_mixture is not None:
        layer.scale_mixture.proportion.assign(0.3)
    return layer


def random_covariance(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Covariance matrices, well conditioned."""
    root = rng.normal(size=(*shape, shape[-1]))
    return root @ np.swapaxes(root, -1, -2) / shape[-1] + 0.5 * np.eye(shape[-1])


def covariances(*shape: int, seed: int = 0) -> tf.Tensor:
    """Well-conditioned covariance matrices that a seed fixes."""
    return tf.constant(random_covariance(np.random.default_rng(seed), *shape))


def target_blocks(covariance: tf.Tensor, size: int, *, full_cov: bool) -> TargetBlocks:
    """K_it and K_tt, or its diagonal, of covariances over inducing points and targets."""
    tt = covariance[:, size:, size:]
    return TargetBlocks(covariance[:, :size, size:], tt if full_cov else tf.linalg.diag_part(tt))


def numpy_matern52(kernel: gpflow.kernels.Matern52, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The kernel between rows of two matrices, without TensorFlow: many calls take no time."""
    apart = (a[:, None] - b) / kernel.lengthscales.numpy()
    r = np.sqrt(5.0) * np.linalg.norm(apart, axis=-1)
    return kernel.variance.numpy() * (1.0 + r + r**2 / 3.0) * np.exp(-r)  # type: ignore[no-any-return]


def toy_data(num: int = 12, num_outputs: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with two columns and a smooth function of them with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num, 2))
    weights = rng.normal(size=(2, num_outputs))
    return X, np.sin(2.0 * X @ weights) + 0.1 * rng.normal(size=(num, num_outputs))


@copied
def tiny_model(
    depth: int = 2, build: str | Callable[..., Any] = "wishart", **arguments: Any
) -> Any:
    """A model of the toy data with random parameters, and pseudo-targets unless asked otherwise.

    :param build: One of :data:`BUILDERS`, or its name.
    """
    data, build = arguments.pop("data", None) or toy_data(), BUILDERS.get(build, build)
    arguments = {"num_inducing": 5, "num_samples": 3, **arguments}
    if "fields" in inspect.signature(build).parameters:  # those of an Architecture
        arguments.setdefault("output", "pseudo_targets")
    model = build(data, depth, **arguments)
    randomise(model, seed=2, scale=0.1)
    return model


def matern_regression(
    data: Any, depth: int, noise: float, num_neighbours: int, **arguments: Any
) -> DeepWishartProcess:
    """A model of known noise with random parameters, whose outputs look at nearest rows."""
    arguments |= {"kernel": "Matern52", "likelihood": gpflow.likelihoods.Gaussian(noise)}
    model = build_deep_wishart_process(data, depth, **arguments)
    randomise(model, seed=2, scale=0.1)
    model.output_layer.num_neighbours = num_neighbours
    for variance in (model.likelihood.variance, model.output_layer.noise_variance):
        variance.assign(noise)
    return model


def jittered(layer: WishartLayer | GlobalInducingGramLayer, k_ii: np.ndarray) -> np.ndarray:
    """K_ii, [M, M], with what a hidden layer adds to its diagonal."""
    return k_ii + layer.jitter * np.mean(np.diag(k_ii)) * np.eye(len(k_ii))


def numpy_wishart_features(
    layer: WishartLayer, k_ii: np.ndarray, t: np.ndarray
) -> tuple[np.ndarray, float]:
    """Features of the inducing points, [M, df], and the sampled log ratio, for a factor T."""
    size, df, factor = layer.num_inducing, layer.df, layer.bartlett_factor
    jitter = layer.jitter * np.mean(np.diag(k_ii)) * np.eye(size)
    prior_scale = scale = k_ii / df
    if layer.scale_mixture is not None:
        mixture = layer.scale_mixture
        q, s = float(mixture.proportion.numpy()), float(mixture.root_scale.numpy())
        V = mixture.root.numpy()
        scale = (1.0 - q) * scale + q * s * V @ V.T / size
    row_mixing, column_mixing = np.linalg.cholesky(scale + jitter / df), np.eye(factor.rank)
    if factor.packed_row_mixing is not None:
        packed = factor.packed_row_mixing.numpy()
        lower = np.tril(packed, -1) + np.eye(len(packed))
        row_mixing = row_mixing @ lower @ (np.triu(packed, 1) + np.diag(np.exp(np.diag(packed))))
    if factor.column_mixing_tril is not None:
        column_mixing = factor.column_mixing_tril.numpy()
    features = np.zeros((size, df))
    features[:, : min(size, df)] = row_mixing @ t @ column_mixing
    gram = features @ features.T
    names = ("concentration", "rate", "loc", "scale")
    of_factor = {name: getattr(factor, name).numpy() for name in names}
    log_ratio = reference.singular_wishart_log_density(gram, prior_scale + jitter / df, df)
    log_ratio -= reference.abgw_log_density(gram, df, row_mixing, column_mixing, **of_factor)
    return features, log_ratio


def numpy_global_inducing(
    layer: GlobalInducingGPLayer | GlobalInducingGramLayer, k_ii: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean [M, Q] and covariance [M, M] of u, and the KL, by explicit inverses of K, [M, M]."""
    size = layer.num_inducing
    precision_tril = layer.precision_tril.numpy()
    precision = precision_tril @ precision_tril.T
    pseudo_targets = layer.pseudo_targets.numpy()
    num_columns = pseudo_targets.shape[1]
    k_inverse = np.linalg.inv(k_ii)
    covariance = np.linalg.inv(k_inverse + precision)
    mean = covariance @ precision @ pseudo_targets
    kl = num_columns * (np.trace(k_inverse @ covariance) - size)
    kl += np.sum(mean * (k_inverse @ mean))
    kl += num_columns * (np.linalg.slogdet(k_ii)[1] - np.linalg.slogdet(covariance)[1])
    return mean, covariance, 0.5 * kl


def numpy_gaussian_features(
    layer: GlobalInducingGramLayer, k_ii: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, float]:
    """Features of the inducing points, [M, df], and the log ratio, for standard normal numbers."""
    k_ii = jittered(layer, k_ii)
    mean, covariance, kl = numpy_global_inducing(layer, k_ii)
    tril = np.linalg.cholesky(k_ii)
    # The layer's root of the covariance: the inverse of an upper-triangular whitened one.
    whitened_precision = tril.T @ np.linalg.inv(covariance) @ tril
    root = tril @ np.linalg.inv(np.linalg.cholesky(whitened_precision)).T
    return (mean + root @ noise) / np.sqrt(layer.width), -kl


def numpy_hidden_layer(
    layer: WishartLayer | GlobalInducingGramLayer,
    covariance: np.ndarray,
    numbers: np.ndarray,
    noise: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Features of all points, [M + N, df], and the log ratio, of one draw; targets one by one.

    :param covariance: K over the inducing points and all targets, [M + N, M + N].
    :param numbers: What the inducing points' draw is made of: the Bartlett factor T, [M, R], or
        standard normal numbers, [M, df].
    :param noise: [N, df].
    """
    size, df = layer.num_inducing, layer.num_features
    k_ii = covariance[:size, :size]
    if isinstance(layer, WishartLayer):
        features, log_ratio = numpy_wishart_features(layer, k_ii, numbers)
    else:
        features, log_ratio = numpy_gaussian_features(layer, k_ii, numbers)

    prior_scale = jittered(layer, k_ii) / df
    rows = [*features]
    for n, row in enumerate(noise):
        k_in = covariance[:size, size + n] / df
        mean = k_in @ np.linalg.solve(prior_scale, features)
        variance = covariance[size + n, size + n] / df - k_in @ np.linalg.solve(prior_scale, k_in)
        rows.append(mean + np.sqrt(variance) * row)
    return np.array(rows), log_ratio


def random_numbers(
    model: DeepKernelProcess, X: np.ndarray, seed: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What every hidden layer draws for a seed: its numbers and noise, for numpy_elbo_terms."""
    path_seed, target_seed = split_seed(as_seed(seed), 2)
    num_layers, num_samples = len(model.layers), model.num_samples
    numbers, noise = [], []
    for layer, inducing_seed, noise_seed in zip(
        model.hidden_layers,
        split_seed(path_seed, num_layers),
        split_seed(target_seed, num_layers),
        strict=False,
    ):
        if isinstance(layer, WishartLayer):
            factor = layer.bartlett_factor.bartlett(tf.float64)
            draw = factor.sample(num_samples, seed=inducing_seed)
        else:
            shape = [num_samples, layer.num_inducing, layer.width]
            draw = normal(shape, inducing_seed, tf.float64)
        numbers.append(draw.numpy())
        of_targets = tf.constant(X), noise_seed, num_samples, layer.num_features
        noise.append(normal_at_points(*of_targets).numpy())
    return numbers, noise


def numpy_elbo_terms(
    model: DeepKernelProcess,
    data: tuple[np.ndarray, np.ndarray],
    numbers: list[np.ndarray],
    noise: list[np.ndarray],
) -> tuple[float, np.ndarray]:
    """The terms of the bound of a model with a Gaussian likelihood, draw by draw.

    :param numbers: Of each hidden layer, as for :func:`numpy_hidden_layer`, [S, M, R or df].
    :param noise: Noise of the targets of each hidden layer, [S, N, df].
    :return: The data's term, and each layer's, [L].
    """
    X, Y = data
    noise_variance = np.broadcast_to(model.likelihood.variance.numpy(), Y.shape[1:])
    points = np.concatenate([model.inducing_variable.Z.numpy(), X])
    size = model.layers[0].num_inducing
    num_samples = len(numbers[0]) if numbers else 1
    data_term, log_ratios = 0.0, np.zeros(len(model.layers))
    for s in range(num_samples):
        features = points
        for index, layer in enumerate(model.hidden_layers):
            covariance = layer.kernel(features).numpy()
            given = covariance, numbers[index][s], noise[index][s]
            features, log_ratio = numpy_hidden_layer(layer, *given)
            log_ratios[index] += log_ratio / num_samples
        covariance = model.output_layer.kernel(features).numpy()
        k_ii, k_it = covariance[:size, :size], covariance[:size, size:]
        mean_u, covariance_u, kl = numpy_global_inducing(model.output_layer, k_ii)
        interpolation = np.linalg.inv(k_ii) @ k_it
        variance = np.diag(covariance)[size:] - np.sum(k_it * interpolation, 0)
        variance = variance + np.sum(interpolation * (covariance_u @ interpolation), 0)
        log_ratios[-1] -= kl / num_samples
        squares = (Y - interpolation.T @ mean_u) ** 2 + variance[:, None]
        expectation = -0.5 * (np.log(2.0 * np.pi * noise_variance) + squares / noise_variance)
        data_term += np.sum(expectation) / num_samples
    return data_term * model.num_data / len(X), log_ratios


def assert_bound_is_that_of_dense_loops(
    model: DeepKernelProcess, data: tuple[np.ndarray, np.ndarray], seed: int = 3
) -> None:
    """A model's bound and its terms are those of NumPy, for the same random numbers."""
    terms = model.elbo_terms(data, seed=seed)

    data_term, log_ratios = numpy_elbo_terms(model, data, *random_numbers(model, data[0], seed))
    np.testing.assert_allclose(terms.log_ratios, log_ratios, rtol=1e-6)
    np.testing.assert_allclose(terms.data, data_term, rtol=1e-6)
    expected = data_term + log_ratios.sum()
    np.testing.assert_allclose(model.elbo(data, seed=seed), expected, rtol=1e-6)


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


class GivenEncoder(Encoder):
    """Means and standard deviations that are given, [N, W], whatever the data."""

    def __init__(self, mean: np.ndarray, scale: np.ndarray) -> None:
        super().__init__(name="GivenEncoder")
        self.mean, self.scale = tf.constant(mean), tf.constant(scale)
        self.latent_dim = mean.shape[1]

    def __call__(self, X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return self.mean, self.scale


class GivenNoise:
    """In place of a layer's noise: numbers that are given, [S, N, width], and hashes of them."""

    def __init__(self, numbers: tf.Tensor, fold: int = 0) -> None:
        self.numbers, self.fold = tf.convert_to_tensor(numbers), fold
        self.gradient_dtype = self.numbers.dtype

    def normal(self, width: int | tf.Tensor) -> tf.Tensor:
        if not self.fold:
            return self.numbers
        rows = tf.reshape(self.numbers, [-1, self.numbers.shape[-1]])
        hashed = normal_at_points(rows, as_seed(self.fold), 1, width)
        return tf.reshape(hashed, tf.concat([tf.shape(self.numbers)[:-1], [width]], axis=0))

    def fold_in(self, number: int) -> GivenNoise:
        return GivenNoise(self.numbers, number)


def assert_gradients_are_finite_differences(
    value: Callable[[], tf.Tensor], variables: Sequence[tf.Variable], rel: float = 1e-5
) -> None:
    """The gradient of a number that draws nothing new, along one direction of all variables.

    Each variable moves as far as changes the number by about as much as any other does.
    """
    with tf.GradientTape() as tape:
        result = value()
    gradients = tape.gradient(result, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    rng = np.random.default_rng(5)
    starts, ends = [each.numpy() for each in variables], []
    steps = [rng.normal(size=start.shape) for start in starts]
    slopes = np.array([np.sum(a * b) for a, b in zip(gradients, steps, strict=True)])
    with np.errstate(divide="ignore"):
        factors = np.minimum(np.abs(slopes).max() / np.abs(slopes), 100.0)
    factors *= np.where(slopes < 0.0, -1.0, 1.0)  # so that no two errors cancel
    for size in (1e-5, -1e-5):
        for variable, start, factor, step in zip(variables, starts, factors, steps, strict=True):
            variable.assign(start + size * factor * step)
        ends.append(float(value()))
    for variable, start in zip(variables, starts, strict=True):
        variable.assign(start)
    np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, factors @ slopes, rel)


def assert_gradient_is_finite_at_inducing_points(layer: GramLayer, width: int) -> None:
    """The layer's three inducing points are the targets, with so many random numbers each."""
    points = tf.constant(np.random.default_rng(0).normal(size=(3, 2)))
    with tf.GradientTape() as tape:
        tape.watch(points)
        covariance = layer.kernel(points)[None]
        draw = layer.sample_inducing(covariance, 1, as_seed(0))
        blocks = TargetBlocks(covariance, tf.linalg.diag_part(covariance))
        noise = tf.ones([1, 3, width], tf.float64)
        gram = layer.condition(draw, blocks, GivenNoise(noise))
        score = tf.reduce_sum(gram.tt) + tf.reduce_sum(gram.it)
    assert np.all(np.isfinite(tape.gradient(score, points)))
