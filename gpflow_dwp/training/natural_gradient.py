"""Natural gradients for some variational parameters, together with Adam for all others."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from gpflow import Parameter
from gpflow.keras import tf_keras
from gpflow.optimizers import NaturalGradient

from gpflow_dwp.training.schedule import decayed_rate

__all__ = ["NaturalGradientAdam"]


class NaturalGradientAdam(tf.Module):
    """GPflow's natural gradients for pairs (mean, root of covariance), Adam for all else.

    Both kinds of step use the gradients of one pass of :func:`fit`. The defaults are those of
    Salimbeni et al. (2019), who move the final layer so: ``NaturalGradientAdam([(layer.q_mu,
    layer.q_sqrt)])``.

    :param variational: Pairs of parameters of Gaussians, [M, Q] and [Q, M, M].
    :param gamma: Step size of the natural gradients.
    :param learning_rate: Learning rate of Adam.
    """

    def __init__(
        self,
        variational: Sequence[tuple[Parameter, Parameter]],
        *,
        gamma: float = 0.01,
        learning_rate: float = 0.005,
    ) -> None:
        super().__init__(name="NaturalGradientAdam")
        if not gamma > 0.0:
            raise ValueError(f"gamma must be positive, got {gamma}.")
        self._pairs = [(mean, root) for mean, root in variational]
        self._gamma = decayed_rate(gamma)
        self._adam = tf_keras.optimizers.Adam(decayed_rate(learning_rate))
        # Natural-gradient steps are linear in the gradient, which carries the step size instead.
        self._natural = NaturalGradient(gamma=1.0)

    def build(self, variables: Sequence[tf.Variable]) -> None:
        """Make Adam's state for all variables that are not moved by natural gradients.

        :param variables: The trainable variables.
        :raises ValueError: If a mean or root is not among them, or nothing is left to Adam.
        """
        given = {id(variable) for variable in variables}
        natural = self._natural_ids()
        if not natural <= given:
            raise ValueError("variational must hold trainable parameters of the model only.")
        self._adam.build([variable for variable in variables if id(variable) not in natural])

    def step(self, pairs: Sequence[tuple[tf.Tensor, tf.Variable]]) -> None:
        """Take a step.

        :param pairs: A gradient, of all replicas if there are several, and its variable, for all
            variables of :meth:`build`.
        """
        natural = self._natural_ids()
        gradients = {id(variable): gradient for gradient, variable in pairs}
        gamma = self._gamma(self._adam.iterations)

        def linearised() -> tf.Tensor:
            """A loss with the gradients that are there already, times the step size."""
            return tf.add_n(
                [
                    tf.cast(gamma, parameter.dtype)
                    * tf.reduce_sum(
                        gradients[id(parameter.unconstrained_variable)]
                        * parameter.unconstrained_variable
                    )
                    for pair in self._pairs
                    for parameter in pair
                ]
            )

        if self._pairs:
            self._natural.minimize(linearised, self._pairs)
        rest = [pair for pair in pairs if id(pair[1]) not in natural]
        self._adam.apply_gradients(rest, skip_gradients_aggregation=True)

    def _natural_ids(self) -> set[int]:
        return {id(parameter.unconstrained_variable) for pair in self._pairs for parameter in pair}
