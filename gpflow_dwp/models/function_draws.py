"""Draws of a model's functions that can be evaluated anywhere, any number of times."""

from __future__ import annotations

import functools
from typing import NamedTuple

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.kernels import Kernel
from gpflow.utilities import freeze, to_default_float

from gpflow_dwp.kernels import RandomFunctions, gram_K_cross, sample_random_functions
from gpflow_dwp.kernels.dtype import kernel_in_dtype
from gpflow_dwp.layers import GaussianPosterior
from gpflow_dwp.layers.propagation import sample_inducing_path
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.linalg import as_jitter, factorise, relative_jitter
from gpflow_dwp.models.deep_kernel_process import DeepKernelProcess
from gpflow_dwp.random import as_seed, normal, split_seed
from gpflow_dwp.validation import check_integers, check_memory

__all__ = ["FunctionDraws"]

# That of the draws at the inducing points.
_ACCURATE = tf.float64


class _Update(NamedTuple):
    """f(x) = (prior(x) + k(x, z) coefficients) scale, for functions that are known at points z.

    :param prior: Functions from the prior, [S, N, Q].
    :param points: Where the kernel functions are centred, z, [S, M, D].
    :param coefficients: Coefficients of the kernel functions, [S, M, Q].
    :param scale: That of a hidden layer's features, [] or [Q].
    """

    prior: RandomFunctions
    points: tf.Tensor
    coefficients: tf.Tensor
    scale: tf.Tensor


class FunctionDraws:
    """S draws of the latent functions from a model's posterior, each a function in closed form.

    A hidden layer's Gram matrix is that of ν Gaussian process features, whose values at the
    inducing points are drawn. Each feature, and the output, is a draw from the prior plus the
    correction that its values at the inducing points ask for (pathwise conditioning: Wilson et
    al., "Efficiently sampling functions from Gaussian process posteriors", 2020). Draws from the
    prior are sums of random waves, which is the only approximation: see
    :func:`sample_random_functions`. The functions are coherent between calls, and differentiable
    as often as their kernels allow, unlike :meth:`DeepPosterior.sample_f`, which is exact, and
    coherent within a call.

    The draws belong to the parameters that the model had; training on does not change them.

    >>> import numpy as np
    >>> from gpflow_dwp.models import build_deep_wishart_process
    >>> X = np.linspace(-1.0, 1.0, 20)[:, None]
    >>> model = build_deep_wishart_process((X, np.sin(3.0 * X)), depth=2, num_inducing=10)
    >>> functions = FunctionDraws(model, num_samples=3, seed=0)
    >>> functions(X[:5]).shape
    TensorShape([3, 5, 1])

    :param model: A deep Wishart process or a deep Gaussian process, with kernels of
        :func:`sample_random_functions`.
    :param num_samples: Number of joint draws, S.
    :param num_features: Number of waves, F, of each function.
    :param seed: An integer or stateless seed; None for fresh draws.
    :raises ValueError: If the model has other layers, or a number is not a positive integer.
    :raises UnsupportedKernelError: If the model has another kernel.
    """

    def __init__(
        self,
        model: DeepKernelProcess,
        num_samples: int,
        *,
        num_features: int = 1_000,
        seed: int | tf.Tensor | None = None,
    ) -> None:
        check_integers(num_samples=num_samples, num_features=num_features)
        check_memory(num_samples, num_features, num_samples=num_samples, num_features=num_features)
        model = freeze(model)
        output = model.output_layer
        hidden = model.hidden_layers
        widths = [width for layer in hidden if (width := layer.num_features) is not None]
        if len(widths) < len(hidden):
            raise ValueError(
                "model must be a deep Wishart process or a deep Gaussian process, got "
                f"{type(model).__name__}."
            )
        self.num_samples = num_samples
        path_seed, function_seed, noise_seed = split_seed(as_seed(seed), 3)
        points = tf.convert_to_tensor(model.inducing_variable.Z)
        warp = warp_of(model.likelihood)
        path = sample_inducing_path(hidden, output, points, num_samples, path_seed, warp)
        seeds = split_seed(function_seed, len(model.layers))
        draw_prior = functools.partial(
            sample_random_functions, num_samples=num_samples, num_features=num_features
        )
        self._updates: list[_Update] = []
        inputs = tf.cast(points, _ACCURATE)[None]
        for layer, width, draw, layer_seed in zip(hidden, widths, path.hidden, seeds, strict=False):
            kernel = kernel_in_dtype(layer.kernel, _ACCURATE)
            prior = draw_prior(kernel, inputs.shape[-1], width, seed=layer_seed)
            # With the columns that are zero there.
            missing_columns = width - draw.features.shape[-1]
            features = tf.pad(draw.features, [[0, 0], [0, 0], [0, missing_columns]])
            scales = layer.scales(features.dtype)
            missing = features / scales - prior(inputs)
            tril = tf.broadcast_to(draw.below.tril, tf.shape(draw.gram))
            coefficients = tf.linalg.cholesky_solve(tril, missing)
            self._updates.append(_Update(prior, inputs, coefficients, scales))
            inputs = features
        num_functions = path.output.weights.shape[-1]
        kernel = kernel_in_dtype(output.kernel, _ACCURATE)
        prior = draw_prior(kernel, inputs.shape[-1], num_functions, seed=seeds[-1])
        values = prior(inputs)
        cross = _feature_cross if hidden else _input_cross
        noise = _coefficient_noise(
            path.output,
            cross(kernel, inputs, inputs),
            normal(values.shape, noise_seed, values.dtype),
        )
        explained = _explained(path.output, values)
        coefficients = path.output.weights - explained - noise
        self._updates.append(_Update(prior, inputs, coefficients, tf.ones([], values.dtype)))
        self._mixing = None if output.mixing is None else tf.cast(output.mixing, _ACCURATE)
        self._mean_function = output.mean_function

    @tf.autograph.experimental.do_not_convert
    @check_shapes("X: [batch..., N, D]", "return: [S, N, Q]")
    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        """Evaluate the functions.

        :param X: Points, [N, D], or [S, N, D] where each function is wanted at points of its own.
        :return: [S, N, Q].
        """
        points = to_default_float(X)
        values = tf.cast(points, _ACCURATE)
        values = values[None] if points.shape.rank == 2 else values
        for index, update in enumerate(self._updates):
            # Only the first kernel acts on inputs; every other one on features.
            cross = _input_cross if index == 0 else _feature_cross
            covariance = cross(update.prior.kernel, update.points, values)
            corrected = tf.matmul(covariance, update.coefficients, transpose_a=True)
            values = (update.prior(values) + corrected) * update.scale
        if self._mixing is not None:
            values = tf.matmul(values, self._mixing, transpose_b=True)
        values = to_default_float(values)
        return values if self._mean_function is None else values + self._mean_function(points)


def _explained(draw: GaussianPosterior, values: tf.Tensor) -> tf.Tensor:
    """A V, by way of the root of A, where there is one, which keeps more digits."""
    if draw.inverse_root is None:
        return tf.matmul(draw.inverse, values)
    return tf.matmul(draw.inverse_root, tf.matmul(draw.inverse_root, values), transpose_a=True)


def _coefficient_noise(
    draw: GaussianPosterior, covariance: tf.Tensor, noise: tf.Tensor
) -> tf.Tensor:
    """Draw noise of covariance A - A K A, A being the inverse of ``draw``.

    For u from the prior, u - K (A u + noise) has the posterior's covariance, K - K A K. Where
    Lᵀ A L has the eigenvalues p, between 0 and 1, Lᵀ (A - A K A) L has p - p². Its symmetric root
    is taken, which does not depend on the signs of eigenvectors: CPU and GPU choose other ones.

    :param draw: The posterior given K.
    :param covariance: K = L Lᵀ, [S, M, M].
    :param noise: Standard normal numbers, [S, M, Q].
    """
    tril = factorise(
        covariance, relative_jitter(covariance, as_jitter(None)), name="a kernel matrix"
    ).tril
    whitened = tf.matmul(tril, _explained(draw, tril), transpose_a=True)
    eigenvalues, vectors = tf.linalg.eigh(whitened)
    p = tf.clip_by_value(eigenvalues, 0.0, 1.0)
    along = tf.matmul(vectors, noise, transpose_a=True)
    scaled = tf.matmul(vectors, tf.sqrt(p * (1.0 - p))[..., None] * along)
    tril = tf.broadcast_to(tril, [*scaled.shape[:1], *tril.shape[1:]])
    return tf.linalg.triangular_solve(tril, scaled, adjoint=True)


def _input_cross(kernel: Kernel, points: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
    """K(z, x), [S, M, N] or [1, M, N]."""
    shape = tf.shape(X)
    flat = kernel(points[0], tf.reshape(X, [-1, X.shape[-1]]))
    return tf.transpose(tf.reshape(flat, [-1, shape[0], shape[1]]), [1, 0, 2])


def _feature_cross(kernel: Kernel, points: tf.Tensor, features: tf.Tensor) -> tf.Tensor:
    """K(z, x), [S, M, N]."""
    return gram_K_cross(
        kernel,
        tf.matmul(points, features, transpose_b=True),
        tf.reduce_sum(tf.square(points), axis=-1),
        tf.reduce_sum(tf.square(features), axis=-1),
        features=(points, features),
    )
