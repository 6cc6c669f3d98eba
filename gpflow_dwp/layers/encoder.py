"""Approximate posteriors over the latent variables of single data points."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable, Sequence

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter, default_float

from gpflow_dwp.random import as_generator
from gpflow_dwp.validation import check_integers, check_memory

__all__ = ["Encoder", "NetworkEncoder"]

_LOG_SCALE_BIAS = -5.0


class Encoder(gpflow.Module, abc.ABC):
    """Gives each datum a mean-field Gaussian over its latent variables."""

    @abc.abstractmethod
    @check_shapes("X: [N, D]", "Y: [N, P]", "return[0]: [N, W]", "return[1]: [N, W]")
    def __call__(self, X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return mean and standard deviation of q(w_n).

        :param X: The model's inputs, [N, D].
        :param Y: Observations, [N, P].
        """


class NetworkEncoder(Encoder):
    """A tanh network of inputs and observations, shared by all data points.

    The defaults are those of Salimbeni, Dutordoir, Hensman and Deisenroth (2019): three layers,
    the inner two of width 10, with a skip connection past each of these (what comes in is cut, or
    padded with zeros, to their width), weights as in Glorot and Bengio (2010), and standard
    deviations that are exponentials with a bias of -5.

    Observations that are missing (NaN) enter as zeros.

    :param num_inputs: D + P, columns of inputs and observations together.
    :param latent_dim: Number of latent variables of each row, W.
    :param hidden_dims: Widths of the inner layers.
    :param seed: For the starting weights.
    :raises ValueError: If a size is not a positive integer, or too large for the machine's memory,
        or, in a call, X and Y have another number of columns.
    """

    def __init__(
        self,
        num_inputs: int,
        latent_dim: int = 1,
        hidden_dims: Sequence[int] = (10, 10),
        *,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        check_integers(num_inputs=num_inputs, latent_dim=latent_dim)
        if isinstance(hidden_dims, str) or not isinstance(hidden_dims, Iterable):
            raise ValueError(
                f"hidden_dims must be a list of positive integers, got {hidden_dims!r}."
            )
        for width in hidden_dims:
            check_integers(hidden_dims=width)
        sizes = [num_inputs, *hidden_dims, 2 * latent_dim]
        for rows, columns in itertools.pairwise(sizes):
            check_memory(
                rows,
                columns,
                num_inputs=num_inputs,
                latent_dim=latent_dim,
                hidden_dims=max(hidden_dims, default=1),
            )
        super().__init__(name="NetworkEncoder")
        self.num_inputs = num_inputs
        self.latent_dim = latent_dim
        self.hidden_dims = list(hidden_dims)
        rng = as_generator(seed)
        self.weights = [
            Parameter(rng.standard_normal(shape) * np.sqrt(2.0 / sum(shape)), dtype=default_float())
            for shape in itertools.pairwise(sizes)
        ]
        self.biases = [Parameter(np.zeros(size), dtype=default_float()) for size in sizes[1:]]

    @inherit_check_shapes
    def __call__(self, X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        if X.shape[1] + Y.shape[1] != self.num_inputs:
            raise ValueError(
                f"X and Y must have num_inputs={self.num_inputs} columns together, got "
                f"{X.shape[1]} and {Y.shape[1]}."
            )
        units = tf.concat([X, tf.where(tf.math.is_nan(Y), tf.zeros_like(Y), Y)], axis=-1)
        for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            units = tf.tanh(tf.matmul(units, weights) + bias) + _resize(units, weights.shape[1])
        mean, log_scale = tf.split(tf.matmul(units, self.weights[-1]) + self.biases[-1], 2, axis=-1)
        return mean, tf.exp(log_scale + _LOG_SCALE_BIAS)


def _resize(units: tf.Tensor, width: int) -> tf.Tensor:
    return tf.pad(units[:, :width], [[0, 0], [0, max(0, width - units.shape[1])]])
