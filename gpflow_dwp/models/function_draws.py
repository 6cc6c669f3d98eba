"""Draws of a model's functions that can be evaluated anywhere, any number of times."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.kernels import Kernel
from gpflow.utilities import to_default_float

from gpflow_dwp.base import Seed, TargetBlocks
from gpflow_dwp.kernels import sample_random_functions
from gpflow_dwp.kernels.draws import KernelDraws
from gpflow_dwp.kernels.gram import cross_of_draws, kernel_in_dtype
from gpflow_dwp.kernels.random_features import RandomFunctions
from gpflow_dwp.layers.rows import NearestRows
from gpflow_dwp.layers.rows_posterior import RowsOfKernels
from gpflow_dwp.linalg import factorise, relative_jitter
from gpflow_dwp.models.deep_kernel_process import DeepKernelProcess
from gpflow_dwp.random import as_seed, normal, split_seed

__all__ = ["FunctionDraws"]

# That of the draws at the inducing points.
_ACCURATE = tf.float64
# Of the output's covariances relative to the kernel's variance: the posterior may be far below it.
_JITTER = 1e-10


class _Update(NamedTuple):
    """f(x) = (prior(x) + k(x, z) coefficients) scale, for functions that are known at points z.

    :param prior: Functions from the prior, [S, N, Q]; None for zero.
    :param kernel: Their kernel, k.
    :param points: Where the kernel functions are centred, z, [S, M, D].
    :param coefficients: Coefficients of the kernel functions, [S, M, Q].
    :param scale: That of a hidden layer's features, [] or [Q].
    """

    prior: RandomFunctions | None
    kernel: Kernel
    points: tf.Tensor
    coefficients: tf.Tensor
    scale: tf.Tensor

    def __call__(self, values: tf.Tensor) -> tf.Tensor:
        covariance = _cross(self.kernel, self.points, values)
        corrected = tf.matmul(covariance, self.coefficients, transpose_a=True)
        prior = 0.0 if self.prior is None else self.prior(values)
        return (prior + corrected) * self.scale


class _UpdateByNeighbours(NamedTuple):
    """f(x) = prior(x) + E[f(x) | residuals], for functions that are observed at the rows near x.

    :param prior: As above.
    :param layer: The output layer.
    :param rows: Observations less draws of them from the prior.
    :param num_columns: S, where draws are columns of these, as rows have one set of inputs; None
        where draws have features of their own.
    """

    prior: RandomFunctions
    layer: NearestRows
    rows: RowsOfKernels
    num_columns: int | None

    def __call__(self, values: tf.Tensor) -> tf.Tensor:
        if self.num_columns is None:
            return self.prior(values) + self.layer.condition_rows(self.rows, values)[0]
        flat = tf.reshape(values, [1, -1, values.shape[-1]])
        mean = self.layer.condition_rows(self.rows, flat)[0]
        columns = [*tf.unstack(tf.shape(values)[:2]), self.num_columns, -1]
        found = tf.transpose(tf.reshape(mean, columns), [1, 3, 0, 2])
        found = found[:, :, 0] if values.shape[0] == 1 else tf.linalg.diag_part(found)
        return self.prior(values) + tf.transpose(found, [2, 0, 1])


class FunctionDraws:
    """S draws of the latent functions from a model's posterior, each a function in closed form.

    A hidden layer's Gram matrix is that of ν Gaussian process features. Their values at the
    inducing points are drawn, and so are the output's. Each feature, and the output, is a draw from
    the prior plus the correction that its values at the inducing points ask for (pathwise
    conditioning: Wilson et al., "Efficiently sampling functions from Gaussian process posteriors",
    2020). Draws from the prior are sums of random waves, which is the only approximation but for
    jitter: see :func:`sample_random_functions`. The functions are coherent between calls, and
    differentiable as often as their kernels allow, unlike :meth:`DeepPosterior.sample_f`, which is
    exact, and coherent within a call.

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
        path_seed, prior_seed, noise_seed = split_seed(as_seed(seed), 3)
        posterior = model.posterior(num_samples, seed=path_seed)
        posterior.spread_kernel_draws()
        hidden, output, path = posterior.hidden, posterior.output, posterior.path
        widths = [width for layer in hidden if (width := layer.num_features) is not None]
        if len(widths) < len(hidden):
            raise ValueError(
                "model must be a deep Wishart process or a deep Gaussian process, got "
                f"{type(model).__name__}."
            )
        by_rows = isinstance(path.output, RowsOfKernels)
        parts = path.output.parts
        of_parts = [part.targets if by_rows else part.weights for part in parts]
        widths = [path.points.shape[-1], *widths, *(each.shape[-1] for each in of_parts)]
        kernels = [*(layer.kernel for layer in hidden), *output.kernels]
        seeds = split_seed(prior_seed, len(model.layers))
        seeds[-1:] = _seeds(seeds[-1], len(output.kernels))
        priors = [
            sample_random_functions(
                kernel_in_dtype(kernel, _ACCURATE),
                widths[min(index, len(hidden))],
                widths[index + 1],
                num_samples=num_samples,
                num_features=num_features,
                seed=seeds[index],
            )
            for index, kernel in enumerate(kernels)
        ]
        of_priors = priors[len(hidden) :]
        # Of each layer, and of its functions those that have kernels of their own.
        updates: list[list[_Update | _UpdateByNeighbours]] = []

        def corrected(
            own: RandomFunctions, points: tf.Tensor, values: tf.Tensor, tril: tf.Tensor, scale: Any
        ) -> _Update:
            """Functions of covariance L Lᵀ at the points, where they have these values."""
            # Below an output that conditions on rows, functions are what they are expected to be.
            prior = None if by_rows else own
            start = 0.0 if prior is None else prior(points)
            tril = tf.broadcast_to(tril, [num_samples, *tril.shape[1:]])
            coefficients = tf.linalg.cholesky_solve(tril, values / scale - start)
            return _Update(prior, own.kernel, points, coefficients, scale)

        points = tf.cast(path.points, _ACCURATE)[None]
        for index, (layer, draw) in enumerate(zip(hidden, path.hidden, strict=True)):
            missing = widths[index + 1] - draw.features.shape[-1]  # columns that are zero there
            features = tf.pad(draw.features, [[0, 0], [0, 0], [0, missing]])
            scales = layer.scales(_ACCURATE)
            updates.append([corrected(priors[index], points, features, draw.below.tril, scales)])
            points = features
        self._updates, self.num_samples = updates, num_samples
        self._mean_function, self._mixing = output.mean_function, output.mixing
        of_noise = _seeds(noise_seed, len(parts))
        if by_rows:
            features = self._features(tf.cast(output.inputs, _ACCURATE)[None])
            updates.append([])
            each_kernel = zip(output.of_kernels, parts, of_priors, of_noise, strict=True)
            for layer, rows, prior, each in each_kernel:
                shape = [num_samples, *rows.targets.shape]
                noise = tf.sqrt(rows.noise)[:, None] * normal(shape, each, _ACCURATE)
                residuals = rows.targets - prior(features) - noise
                at = None if rows.inducing is None else points
                num_columns = None if hidden else num_samples
                if not hidden:
                    residuals = tf.reshape(tf.transpose(residuals, [1, 0, 2]), [shape[1], -1])
                rows = layer.infer_rows(features, residuals, at)
                updates[-1].append(_UpdateByNeighbours(prior, layer, rows, num_columns))
            return
        updates.append([])
        for prior, part, each in zip(of_priors, parts, of_noise, strict=True):
            covariance = _cross(prior.kernel, points, points)
            jitter = relative_jitter(covariance, _JITTER)
            tril = factorise(covariance, jitter, name="the output layer's K_ii").tril
            mean, remaining = output.condition(part, TargetBlocks(covariance, covariance))
            root = factorise(remaining, jitter, name="the functions' covariance").tril
            noise = normal([num_samples, *mean.shape[1:]], each, _ACCURATE)
            values = mean + tf.matmul(root, noise)
            updates[-1].append(corrected(prior, points, values, tril, tf.ones([], _ACCURATE)))

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
        values = self._features(values)
        if self._mixing is not None:
            values = tf.matmul(values, tf.cast(self._mixing, _ACCURATE), transpose_b=True)
        values = to_default_float(values)
        return values if self._mean_function is None else values + self._mean_function(points)

    def _features(self, values: tf.Tensor) -> tf.Tensor:
        """What the functions that there are make of inputs, [S, N, ...]."""
        for updates in self._updates:
            values = tf.concat([update(values) for update in updates], axis=-1)
        return values


def _cross(kernel: Kernel, points: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Covariance of points and others under each draw, [S, M, N]."""
    if isinstance(kernel, KernelDraws):
        return kernel(points, values)
    return cross_of_draws(kernel, points, values)


def _seeds(seed: Seed, num: int) -> list[Seed]:
    return [seed] if num == 1 else split_seed(seed, num)
