"""Gradients that are not those of the values: for doubly reparameterised latent variables."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

__all__ = ["with_gradient_of", "with_weighted_gradient"]


def with_gradient_of(
    values: tf.Tensor, inputs: tf.Tensor, function: Callable[[tf.Tensor], tf.Tensor]
) -> tf.Tensor:
    """Return values whose derivative by the inputs is that of a function.

    :param values: What is returned; what it is made of gets its own gradients, too.
    :param inputs: The function's argument.
    :param function: Of the shape of the values. Nothing but its argument gets gradients.
    """

    @tf.custom_gradient
    def attach(
        values: tf.Tensor, inputs: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(inputs)
                attached = function(inputs)
            return upstream, tape.gradient(attached, inputs, output_gradients=upstream)

        return tf.identity(values), gradient

    return attach(values, inputs)


def with_weighted_gradient(draws: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return draws whose gradients are multiplied by their normalised importance weights.

    :param draws: [S, N, K, W].
    :return: The draws, and zeros [S, N, K] to be added to their log weights. In the gradient of a
        log-mean-exp over K these zeros receive the weights, up to a factor for each datum.
    """

    @tf.custom_gradient
    def attach(
        draws: tf.Tensor,
    ) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[[tf.Tensor, tf.Tensor], tf.Tensor]]:
        def gradient(upstream: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
            total = tf.reduce_sum(weights, axis=-1, keepdims=True)
            return upstream * tf.math.divide_no_nan(weights, total)[..., None]

        return (tf.identity(draws), tf.zeros_like(draws[..., 0])), gradient

    values, zeros = attach(draws)
    return values, zeros
