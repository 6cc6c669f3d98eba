"""Latent variables of single data points, as extra inputs, and their approximate posteriors."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Sequence
from typing import ClassVar

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter, default_float
from gpflow.utilities import positive

from gpflow_dwp.base import Array
from gpflow_dwp.layers.base import Description, Layer
from gpflow_dwp.papers import LATENT_VARIABLES
from gpflow_dwp.random import as_generator, hash_rows
from gpflow_dwp.validation import check_arrays, check_flags, check_instance, check_integers

__all__ = ["Encoder", "LatentVariableLayer", "NetworkEncoder", "RowEncoder", "append_latents"]

_LOG_SCALE_BIAS = -5.0


class Encoder(gpflow.Module, abc.ABC):
    """Gives each datum a mean-field Gaussian over its latent variables.

    :ivar latent_dim: Number of latent variables of each row, W.
    """

    latent_dim: int

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
    :raises ValueError: If a size is not a positive integer, or, in a call, X and Y have another
        number of columns.
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
        for width in hidden_dims:
            check_integers(hidden_dims=width)
        sizes = [num_inputs, *hidden_dims, 2 * latent_dim]
        super().__init__(name="NetworkEncoder")
        self.num_inputs = num_inputs
        self.latent_dim = latent_dim
        self.hidden_dims = list(hidden_dims)
        rng = as_generator(seed)
        pairs = itertools.pairwise(sizes)
        starts = (rng.standard_normal(pair) * np.sqrt(2.0 / sum(pair)) for pair in pairs)
        self.weights = [Parameter(start) for start in starts]
        self.biases = [Parameter(np.zeros(size)) for size in sizes[1:]]

    @inherit_check_shapes
    def __call__(self, X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        if X.shape[1] + Y.shape[1] != self.num_inputs:
            raise ValueError(
                f"X and Y must have num_inputs={self.num_inputs} columns together, got "
                f"{X.shape[1]} and {Y.shape[1]}."
            )
        units = tf.concat([X, tf.where(tf.math.is_nan(Y), tf.zeros_like(Y), Y)], axis=-1)
        for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            width = weights.shape[1]
            kept = tf.pad(units[:, :width], [[0, 0], [0, max(0, width - units.shape[1])]])
            units = tf.tanh(tf.matmul(units, weights) + bias) + kept
        mean, log_scale = tf.split(tf.matmul(units, self.weights[-1]) + self.biases[-1], 2, axis=-1)
        return mean, tf.exp(log_scale + _LOG_SCALE_BIAS)


class RowEncoder(Encoder):
    """A mean and a standard deviation of its own for each training row, also in minibatches.

    Rows are told apart by their values: copies share parameters, as their posterior is the same.
    Of a row that is not among them mean and standard deviation are NaN, and so is a bound.

    :param X: Training inputs as the model gets them, [N, D].
    :param Y: Observations, [N, P], NaN where they are missing.
    :param latent_dim: Number of latent variables of each row, W.
    :raises ValueError: If X and Y are not two matrices of one length, or ``latent_dim`` is not a
        positive integer.
    :ivar mean: Means, [N, W], which start at zero.
    :ivar scale: Standard deviations, [N, W], which start at exp(-5).
    """

    def __init__(self, X: Array, Y: Array, latent_dim: int = 1) -> None:
        check_integers(latent_dim=latent_dim)
        X, Y = check_arrays(X, Y, may_miss=True)
        super().__init__(name="RowEncoder")
        self.X: Array = X.astype(default_float())
        self.Y: Array = Y.astype(default_float())
        self.latent_dim = latent_dim
        self.mean = Parameter(np.zeros((len(X), latent_dim)))
        start = np.full((len(X), latent_dim), np.exp(_LOG_SCALE_BIAS))
        self.scale = Parameter(start, transform=positive(base="exp"))
        keys = _row_keys(tf.constant(self.X), tf.constant(self.Y)).numpy()
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    @inherit_check_shapes
    def __call__(self, X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        keys = _row_keys(X, Y)
        places = tf.minimum(tf.searchsorted(self._keys, keys), len(self._keys) - 1)
        is_known = tf.equal(tf.gather(self._keys, places), keys)[:, None, None]
        # By way of a stack gradients are dense, as optimisers expect.
        moments = tf.stack([self.mean, self.scale], axis=-1)
        moments = tf.gather(moments, tf.gather(self._order, places))
        moments = tf.where(is_known, moments, tf.constant(np.nan, moments.dtype))
        return moments[..., 0], moments[..., 1]


def _row_keys(X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
    """A number for each row, that no other row has, [N]."""
    known = tf.where(tf.math.is_nan(Y), tf.constant(np.inf, Y.dtype), Y)  # NaN have many forms
    return tf.bitcast(hash_rows(tf.concat([X, known], axis=-1), tf.zeros([2], tf.int32)), tf.int64)


class LatentVariableLayer(Layer):
    """Appends w_n ~ N(0, I), independent from datum to datum, to what comes from below.

    As inputs of a Gaussian process rather than noise added to its output, they give the model
    non-Gaussian marginals (Salimbeni, Dutordoir, Hensman and Deisenroth, "Deep Gaussian processes
    with importance-weighted variational inference", 2019, section 2). Their posterior comes from
    the encoder; predictions draw them from the prior.

    :param encoder: From X and Y to mean and standard deviation of q(w_n), [N, W] each.
    :param doubly_reparameterised: Whether, with more than one copy, the encoder's gradient is that
        of Tucker, Lawson, Gu and Maddison ("Doubly reparameterized gradient estimators for Monte
        Carlo objectives", 2019, equation 8). It has the expectation of the plain one, no noise
        where q is exact, and is no derivative of one bound from one seed.
    :raises ValueError: If ``encoder`` is no :class:`Encoder`, or the other no flag.
    """

    papers: ClassVar[tuple[str, ...]] = (LATENT_VARIABLES,)

    def __init__(self, encoder: Encoder, *, doubly_reparameterised: bool = False) -> None:
        check_instance(Encoder, encoder=encoder)
        check_flags(doubly_reparameterised=doubly_reparameterised)
        super().__init__(name="LatentVariableLayer")
        self.encoder = encoder
        self.doubly_reparameterised = doubly_reparameterised

    @property
    def latent_dim(self) -> int:
        """W, the number of latent variables of each row."""
        return self.encoder.latent_dim

    def describe(self) -> Description:
        return Description(f"latent variables [{self.latent_dim}]", type(self.encoder).__name__)

    @check_shapes(
        *("X: [N, D]", "Y: [N, P]", "noise: [S, N, K, W]"),
        *("return[0]: [S, N, K, W]", "return[1]: [broadcast S, N, K]"),
    )
    def sample(self, X: tf.Tensor, Y: tf.Tensor, noise: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Draw K copies of w_n from its approximate posterior.

        :param X: The model's inputs.
        :param Y: Observations.
        :param noise: Standard normal numbers.
        :return: The draws, [S, N, K, W], and log p(w) - log q(w) of each, summed over its W
            entries, [S, N, K]; of a single copy its expectation, -KL[q ‖ p], [1, N, 1].
        """
        mean, scale = self.encoder(X, Y)
        values = mean[:, None, :] + scale[:, None, :] * noise
        if noise.shape[2] == 1:
            expected = 0.5 * (1.0 - tf.square(mean) - tf.square(scale)) + tf.math.log(scale)
            return values, tf.reduce_sum(expected, axis=-1)[None, :, None]
        zeros = tf.zeros([], values.dtype)
        if self.doubly_reparameterised:
            values, zeros = _weigh_gradient(values)
            # The density's own parameters have no part in the gradient, but its argument has.
            mean, scale = tf.stop_gradient(mean), tf.stop_gradient(scale)
            noise = (values - mean[:, None, :]) / scale[:, None, :]
        # log N(w; 0, 1) - log N(w; m, s²), in which the constants cancel and (w - m)/s is noise.
        log_ratio = 0.5 * (tf.square(noise) - tf.square(values)) + tf.math.log(scale)[:, None, :]
        return values, tf.reduce_sum(log_ratio, axis=-1) + zeros


@tf.custom_gradient
def _weigh_gradient(
    values: tf.Tensor,
) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[[tf.Tensor, tf.Tensor], tf.Tensor]]:
    """Return values [S, N, K, W], and zeros [S, N, K] that a term of their log weights needs.

    The derivative of log (1/K) Σ_k w_k by log w_k is copy k's share of the weights. That of its
    values is multiplied by the share once more.
    """

    def gradient(of_values: tf.Tensor, of_log_weights: tf.Tensor) -> tf.Tensor:
        total = tf.reduce_sum(of_log_weights, axis=-1, keepdims=True)
        return tf.math.divide_no_nan(of_log_weights, total)[..., None] * of_values

    return (tf.identity(values), tf.zeros_like(values[..., 0])), gradient


@check_shapes("features: [...]", "latents: [batch..., W]", "return: [batch..., D]")
def append_latents(features: tf.Tensor, latents: tf.Tensor) -> tf.Tensor:
    """Append latent variables to features as further columns.

    :param features: [..., D], whose leading axes broadcast to those of the latent variables.
    :param latents: Latent variables, w, [..., W].
    """
    shape = tf.concat([tf.shape(latents)[:-1], tf.shape(features)[-1:]], axis=0)
    appended = tf.concat([tf.broadcast_to(features, shape), latents], axis=-1)
    width = features.shape[-1] + latents.shape[-1]
    return tf.ensure_shape(appended, [*latents.shape[:-1], width])
