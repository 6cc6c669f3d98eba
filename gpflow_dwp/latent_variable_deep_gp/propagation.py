"""The fold over latent-variable layers and Gaussian process layers with inducing inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf
from check_shapes import check_shapes

from gpflow_dwp.base import Seed
from gpflow_dwp.latent_variable_deep_gp.layer import LocalInducingGPLayer
from gpflow_dwp.layers import LatentVariableLayer
from gpflow_dwp.layers.latent_variable import append_latents
from gpflow_dwp.random import normal, split_seed

__all__ = ["ImportanceCopies", "LocalLayer", "propagate_copies", "propagate_from_prior"]

LocalLayer = LatentVariableLayer | LocalInducingGPLayer
"""What such a model is made of; the last one is a Gaussian process layer."""

_Noise = Callable[[Seed, int], tf.Tensor]


class ImportanceCopies(NamedTuple):
    """K copies of each datum, carried through the layers.

    :param mean: Mean of the output given all below, [S, N, K, Q].
    :param variance: Its variance, of the same shape.
    :param local_log_ratio: log p - log q of each copy's latent variables, [S, N, K]; where K is 1
        its expectation, in closed form.
    :param log_ratios: Each layer's -KL, [1]: zero for latent variables, which are local.
    """

    mean: tf.Tensor
    variance: tf.Tensor
    local_log_ratio: tf.Tensor
    log_ratios: tuple[tf.Tensor, ...]


@check_shapes("X: [N, D]", "Y: [N, P]", "seed: [2]")
def propagate_copies(
    layers: Sequence[LocalLayer],
    X: tf.Tensor,
    Y: tf.Tensor,
    num_samples: int,
    num_copies: int,
    seed: Seed,
    *,
    doubly_reparameterized: bool = False,
) -> ImportanceCopies:
    """Carry K copies of each datum, with latent variables from their posterior.

    The copies of one datum see one draw of every function: they are drawn jointly, with the K x K
    covariance of each process at their inputs. Different data are drawn apart, which changes no
    term of a sum over them. Below the first latent variables the copies coincide, and are one.

    :param layers: The layers, bottom first.
    :param X: Inputs.
    :param Y: Observations, for the encoders.
    :param num_samples: Number of joint draws, S.
    :param num_copies: Number of copies of each row, K.
    :param seed: A stateless seed, [2].
    :param doubly_reparameterized: See :meth:`LatentVariableLayer.sample`. Functions that are drawn
        above count as fixed then, and a copy's weight depends on its own latent variables alone.
        Nothing changes where K is 1.
    """
    *hidden, output = layers
    num_data = tf.shape(X)[0]
    features, copies = X[None, :, None, :], 1
    local_log_ratio = tf.zeros([1, 1, 1], X.dtype)
    log_ratios: list[tf.Tensor] = []
    for layer, layer_seed in zip(hidden, split_seed(seed, len(layers)), strict=False):
        if isinstance(layer, LatentVariableLayer):
            copies = num_copies
            noise = normal([num_samples, num_data, copies, layer.latent_dim], layer_seed, X.dtype)
            draw = layer.sample(
                X, Y, noise, doubly_reparameterized=doubly_reparameterized and copies > 1
            )
            features = append_latents(features, draw.latents)
            local_log_ratio += draw.local_log_ratio()
            log_ratios.append(tf.zeros([1], X.dtype))
        else:
            noise = normal(
                [num_samples, num_data, copies, layer.num_functions], layer_seed, X.dtype
            )
            features = layer.sample(
                features,
                noise,
                full_cov=copies > 1,
                as_fixed_function=doubly_reparameterized and copies > 1,
            )
            log_ratios.append(layer.log_ratio())
    mean, variance = output.predict(features, full_cov=False)
    log_ratios.append(output.log_ratio())
    return ImportanceCopies(mean, variance, local_log_ratio, tuple(log_ratios))


@check_shapes("X: [N, D]")
def propagate_from_prior(
    layers: Sequence[LocalLayer], X: tf.Tensor, noise: _Noise, seed: Seed, *, full_cov: bool
) -> tuple[tf.Tensor, tf.Tensor]:
    """Carry test points, with latent variables from their prior.

    :param layers: The layers, bottom first.
    :param X: Inputs.
    :param noise: From a stateless seed and a width to standard normal numbers, [S, N, width].
    :param seed: A stateless seed, [2].
    :param full_cov: Whether all points of a draw are values of one function.
    :return: The output's mean given all below, [S, N, Q], and its variance, [S, N, Q], or
        covariance, [S, Q, N, N]. S is 1 where nothing below is random.
    """
    *hidden, output = layers
    features = X[None]
    for layer, layer_seed in zip(hidden, split_seed(seed, len(layers)), strict=False):
        if isinstance(layer, LatentVariableLayer):
            features = append_latents(features, noise(layer_seed, layer.latent_dim))
        else:
            numbers = noise(layer_seed, layer.num_functions)
            features = layer.sample(features, numbers, full_cov=full_cov)
    return output.predict(features, full_cov=full_cov)
