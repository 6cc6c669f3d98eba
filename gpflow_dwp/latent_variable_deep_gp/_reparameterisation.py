"""Gradients that are not those of the values."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

__all__ = ["with_gradient_of"]


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
