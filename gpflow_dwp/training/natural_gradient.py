"""Natural gradients for some variational parameters, together with Adam for all others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tensorflow as tf
from gpflow import Parameter
from gpflow.keras import tf_keras
from gpflow.optimizers import NaturalGradient

from gpflow_dwp.training.distribution import aggregated

__all__ = ["NaturalGradientAdam", "decayed_rate"]


def decayed_rate(initial: float) -> tf_keras.optimizers.schedules.LearningRateSchedule:
    """Return a step size that is multiplied by 0.98 after every 1,000 steps.

    As in Salimbeni, Dutordoir, Hensman and Deisenroth, "Deep Gaussian processes with
    importance-weighted variational inference", 2019, appendix A.

    :param initial: The step size of the first step.
    """
    return tf_keras.optimizers.schedules.ExponentialDecay(initial, 1_000, 0.98, staircase=True)


class NaturalGradientAdam(tf.Module):
    """GPflow's natural gradients for pairs (mean, root of covariance), Adam for all else.

    It has the methods of an optimiser that training calls, and sums gradients over replicas as
    Keras' do; both kinds of step use the gradients of one pass. The defaults are those of Salimbeni
    et al. (2019), who move the final layer so: ``NaturalGradientAdam([(layer.q_mu,
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

    def apply_gradients(
        self,
        pairs: Iterable[tuple[tf.Tensor, tf.Variable]],
        *,
        skip_gradients_aggregation: bool = False,
    ) -> None:
        """Take a step.

        :param pairs: A gradient and its variable, for all variables of :meth:`build`.
        :param skip_gradients_aggregation: Whether gradients are those of all replicas by now.
        :raises ValueError: If there are several replicas, and this is none of them or uses
            variables from outside their strategy's scope.
        """
        pairs = list(pairs) if skip_gradients_aggregation else aggregated(self, pairs)
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
