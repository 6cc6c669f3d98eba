"""Adam, with all parameters in one vector."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

__all__ = ["Adam", "AdamState", "adam_step"]


class AdamState(NamedTuple):
    """The state of Adam: number of steps taken, [], and moments of the gradient, [P]."""

    iterations: tf.Tensor
    means: tf.Tensor
    square_means: tf.Tensor


def adam_step(
    state: AdamState, gradient: tf.Tensor, settings: tf.Tensor
) -> tuple[tf.Tensor, AdamState]:
    """Return what a step of Adam takes off all parameters, [P], and its new state.

    :param gradient: The gradient, [P].
    :param settings: Learning rate, decays and epsilon, [4].
    """
    dtype = gradient.dtype
    rate, beta_1, beta_2, epsilon = tf.unstack(tf.cast(settings, dtype))
    iterations = state.iterations + 1
    step = tf.cast(iterations, dtype)
    correction = tf.sqrt(1.0 - beta_2**step) / (1.0 - beta_1**step)
    means = state.means + (1.0 - beta_1) * (gradient - state.means)
    squares = state.square_means + (1.0 - beta_2) * (gradient**2 - state.square_means)
    change = rate * correction * means / (tf.sqrt(squares) + epsilon)
    return change, AdamState(iterations, means, squares)


class Adam(tf.Module):
    """Adam (Kingma and Ba, 2015) for :func:`fit`, updating all variables as one vector.

    A model of this package has dozens of small variables. An update of each by itself, as Keras
    does it, is a thousand small operations and takes as long as a tenth of a step. The iterates are
    those of ``tf_keras.optimizers.Adam`` with the same settings, which loops of your own take.

    :param learning_rate: A number, or a function of the number of steps taken, such as a Keras
        schedule.
    :param beta_1: Decay of the mean of the gradients.
    :param beta_2: Decay of the mean of their squares.
    :param epsilon: What is added to the root of the latter.
    """

    def __init__(
        self,
        learning_rate: float | Callable[[tf.Tensor], tf.Tensor] = 1e-3,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
    ) -> None:
        super().__init__(name="Adam")
        self.learning_rate = learning_rate
        self._rest = (beta_1, beta_2, epsilon)
        self.iterations = tf.Variable(0, dtype=tf.int64, trainable=False)
        # Weakly, so that checkpoints of the optimiser do not hold the variables, too.
        self._variables: tuple[weakref.ref[tf.Variable], ...] = ()

    def build(self, variables: Sequence[tf.Variable]) -> None:
        """Make room for the moments of ``variables``, which must have one dtype.

        Built for the same ones already, it goes on with their moments; for others it begins anew.

        :raises ValueError: If they have several.
        """
        dtypes = {variable.dtype for variable in variables}
        if len(dtypes) != 1:
            names = ", ".join(sorted(dtype.name for dtype in dtypes))
            raise ValueError(f"variables must have one dtype, got {names}.")
        if self._variables:
            if [id(reference()) for reference in self._variables] == [*map(id, variables)]:
                return
            self.iterations.assign(0)
        self._variables = tuple(weakref.ref(variable) for variable in variables)
        size = sum(variable.shape.num_elements() for variable in variables)
        zeros = tf.zeros([size], dtypes.pop())
        self.means = tf.Variable(zeros, trainable=False)
        self.square_means = tf.Variable(zeros, trainable=False)

    @property
    def state(self) -> AdamState:
        """Its variables."""
        return AdamState(self.iterations, self.means, self.square_means)

    def settings(self, num_steps: int | tf.Tensor) -> tf.Tensor:
        """Return learning rate, decays and epsilon of the next steps, in float64, [num_steps, 4].

        :param num_steps: Number of steps.
        """
        rate, rest = self.learning_rate, tf.constant(self._rest, tf.float64)

        def of_step(taken: tf.Tensor) -> tf.Tensor:
            # A cast of a Python number would round it to float32 first.
            now = rate(self.iterations + taken) if callable(rate) else tf.constant(rate, tf.float64)
            return tf.concat([tf.reshape(tf.cast(now, tf.float64), [1]), rest], axis=0)

        if not callable(rate):
            return tf.repeat(of_step(tf.constant(0, tf.int64))[None], num_steps, axis=0)
        steps = tf.range(tf.cast(num_steps, tf.int64))
        return tf.map_fn(of_step, steps, fn_output_signature=tf.TensorSpec([4], tf.float64))
