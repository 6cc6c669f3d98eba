"""Random Fourier features: draws of functions from the prior of a stationary kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.kernels import Constant, Kernel, Linear, Sum

from gpflow_dwp.base import Seed
from gpflow_dwp.exceptions import UnsupportedKernelError
from gpflow_dwp.kernels.check import check_input_kernel
from gpflow_dwp.kernels.draws import KernelDraws, SumDraws
from gpflow_dwp.kernels.of_inputs import LevelsMatern52, SeparableMatern52
from gpflow_dwp.kernels.values import is_of_one_input
from gpflow_dwp.random import as_seed, normal, split_seed, uniform
from gpflow_dwp.validation import check_integers

__all__ = ["RandomFunctions", "SumOfFunctions", "WeightedFeatures", "sample_random_functions"]

# Degrees of freedom of the t distribution that is each kernel's spectral density (Rasmussen and
# Williams, 2006, equation 4.15); None for a Gaussian.
_DEGREES: dict[type[Kernel], int | None] = {
    gpflow.kernels.SquaredExponential: None,
    gpflow.kernels.Matern12: 1,
    gpflow.kernels.Matern32: 3,
    gpflow.kernels.Matern52: 5,
    LevelsMatern52: 5,
    SeparableMatern52: 5,  # of each input by itself
}


# A function of one of several inputs is a smaller part of a sum, and has no fewer waves than these.
_LEAST_FEATURES = 50


class WeightedFeatures(NamedTuple):
    """S times Q functions: sums of features of a point, with random weights.

    :param kernel: Of which they are drawn.
    :param features: From points, [S, N, D], or [1, N, D], to features, [S, N, F] or [1, N, F].
    :param weights: [S, F, Q].
    """

    kernel: Kernel
    features: Callable[[tf.Tensor], tf.Tensor]
    weights: tf.Tensor

    @check_shapes("X: [broadcast S, N, D]", "return: [S, N, Q]")
    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        """Evaluate the functions, at the same points where X is [1, N, D]."""
        return tf.matmul(self.features(X), self.weights)


class SumOfFunctions(NamedTuple):
    """Sums of functions that do not depend on each other.

    :param kernel: The sum of kernels.
    :param parts: Functions of each.
    """

    kernel: Sum | SumDraws
    parts: tuple[RandomFunctions, ...]

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        """Evaluate the functions."""
        return tf.add_n([part(X) for part in self.parts])


RandomFunctions = WeightedFeatures | SumOfFunctions


def _waves(kernel: Kernel, frequencies: tf.Tensor, phases: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
    """Of frequencies, [S, F, D], in units of inverse lengthscales, and phases, [S, F]."""
    scaled = kernel.scale(kernel.slice(X, None)[0])
    return tf.cos(tf.matmul(scaled, frequencies, transpose_b=True) + phases[:, None, :])


def _columns(kernel: Kernel, X: tf.Tensor) -> tf.Tensor:
    return kernel.slice(X, None)[0]


def _ones(X: tf.Tensor) -> tf.Tensor:
    return tf.ones_like(X[..., :1])


def sample_random_functions(
    kernel: Kernel,
    num_inputs: int,
    num_functions: int,
    *,
    num_samples: int,
    num_features: int,
    seed: int | Seed | None,
) -> RandomFunctions:
    """Draw functions from a process with a stationary, linear or constant kernel, or their sum.

    Each function is Σ_j √(2σ²/F) w_j cos(ω_jᵀ x/ℓ + b_j), with w_j ~ N(0, 1), b_j uniform on
    [0, 2π), and ω_j from the kernel's spectral density (Rahimi and Recht, 2007). All S draws have
    frequencies of their own, so that over them the covariance is the kernel's, however small F;
    the Q functions of one draw share them. Of a sum each part has functions of its own.

    :param kernel: ``SquaredExponential``, ``Matern12``, ``Matern32``, ``Matern52``,
        ``LevelsMatern52``, ``SeparableMatern52``, ``Linear``, ``Constant``, or a ``Sum`` of these;
        or S draws of one. The functions are of its parameters' dtype.
    :param num_inputs: Number of input columns, D.
    :param num_functions: Number of functions, Q.
    :param num_samples: Number of joint draws, S.
    :param num_features: F. More make one draw's functions closer to Gaussian.
    :param seed: An integer; a stateless seed, [2]; or None for other functions at every call.
    :raises UnsupportedKernelError: If the kernel is another one.
    :raises ValueError: If a number is not a positive integer, the kernel is not for D columns, or
        ``seed`` is none.
    """
    if isinstance(kernel, Sum | SumDraws):
        singles = sum(map(is_of_one_input, kernel.kernels))
        of_one = max(_LEAST_FEATURES, num_features // max(singles, 1))
        seeds = split_seed(as_seed(seed), len(kernel.kernels))
        parts = [
            sample_random_functions(
                part,
                num_inputs,
                num_functions,
                num_samples=num_samples,
                num_features=min(num_features, of_one) if is_of_one_input(part) else num_features,
                seed=seeds[index],
            )
            for index, part in enumerate(kernel.kernels)
        ]
        return SumOfFunctions(kernel, tuple(parts))
    is_drawn = isinstance(kernel, KernelDraws)
    kind = type(kernel.unit if is_drawn else kernel)
    if kind not in (*_DEGREES, Linear, Constant):
        names = ", ".join([*(cls.__name__ for cls in _DEGREES), "Linear", "Constant", "Sum"])
        raise UnsupportedKernelError(
            f"Functions can be drawn from the kernels {names}, not from {kind.__name__}."
        )
    check_integers(num_inputs=num_inputs, num_functions=num_functions)
    check_integers(num_samples=num_samples, num_features=num_features)
    if not is_drawn:
        check_input_kernel(kernel, num_inputs)
    dtype = kernel.variance.dtype
    if kind is Constant:
        values = normal([num_samples, 1, num_functions], as_seed(seed), dtype)
        return WeightedFeatures(kernel, _ones, tf.sqrt(kernel.variance) * values)
    inputs = kernel.slice(tf.zeros([1, num_inputs], dtype), None)[0]
    active = inputs.shape[1]
    if kind is Linear:
        slopes = normal([num_samples, active, num_functions], as_seed(seed), dtype)
        scale = tf.sqrt(kernel.variance)
        slopes *= scale if is_drawn else scale[..., None]
        return WeightedFeatures(kernel, functools.partial(_columns, kernel), slopes)
    degrees, active = _DEGREES[kind], kernel.scale(inputs).shape[-1]
    wave_seed, scale_seed, phase_seed, weight_seed = split_seed(as_seed(seed), 4)
    frequencies = normal([num_samples, num_features, active], wave_seed, dtype)
    if degrees is not None:
        num_scales = active if kind is SeparableMatern52 else 1
        shape = [num_samples, num_features, num_scales * degrees]
        squares = tf.square(normal(shape, scale_seed, dtype))
        squares = tf.reshape(squares, [*shape[:2], num_scales, degrees])
        frequencies /= tf.sqrt(tf.reduce_mean(squares, axis=-1))
    weights = normal([num_samples, num_features, num_functions], weight_seed, dtype)
    weights *= tf.sqrt(2.0 * kernel.variance / num_features)
    phases = 2.0 * np.pi * uniform([num_samples, num_features], phase_seed, dtype)
    return WeightedFeatures(kernel, functools.partial(_waves, kernel, frequencies, phases), weights)
