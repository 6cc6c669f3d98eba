"""Optimisers of :func:`fit`, schedules, and the protocols that put them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import tensorflow as tf
from gpflow import Parameter
from gpflow.keras import tf_keras
from gpflow.optimizers import NaturalGradient

from gpflow_dwp.models import VariationalModel

__all__ = [
    "PROTOCOLS",
    "Adam",
    "AdamState",
    "NaturalGradientAdam",
    "ProtocolName",
    "TrainingProtocol",
    "adam_step",
    "cosine_learning_rate",
    "decayed_rate",
    "kl_weights",
    "paper_learning_rate",
]


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

    def build(self, variables: Sequence[tf.Variable]) -> None:
        """Make room for the moments of ``variables``, which must have one dtype.

        They begin at zero, also where it was built before.

        :raises ValueError: If they have several.
        """
        dtypes = {variable.dtype for variable in variables}
        if len(dtypes) != 1:
            names = ", ".join(sorted(dtype.name for dtype in dtypes))
            raise ValueError(f"variables must have one dtype, got {names}.")
        self.iterations.assign(0)
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
        natural = self._moved_naturally().keys()
        if not natural <= given:
            raise ValueError("variational must hold trainable parameters of the model only.")
        self._adam.build([variable for variable in variables if id(variable) not in natural])

    def step(self, pairs: Sequence[tuple[tf.Tensor, tf.Variable]]) -> None:
        """Take a step.

        :param pairs: A gradient, of all replicas if there are several, and its variable, for all
            variables of :meth:`build`.
        """
        natural = self._moved_naturally()
        gradients = {id(variable): gradient for gradient, variable in pairs}
        gamma = self._gamma(self._adam.iterations)

        def linearised() -> tf.Tensor:
            """A loss with the gradients that are there already, times the step size."""
            each = (
                tf.cast(gamma, variable.dtype) * tf.reduce_sum(gradients[key] * variable)
                for key, variable in natural.items()
            )
            return tf.add_n(list(each))

        if self._pairs:
            self._natural.minimize(linearised, self._pairs)
        rest = [pair for pair in pairs if id(pair[1]) not in natural]
        self._adam.apply_gradients(rest, skip_gradients_aggregation=True)

    def _moved_naturally(self) -> dict[int, tf.Variable]:
        variables = (each.unconstrained_variable for pair in self._pairs for each in pair)
        return {id(variable): variable for variable in variables}


def cosine_learning_rate(
    num_steps: int, initial: float = 3e-2, *, warmup_steps: int = 0
) -> tf_keras.optimizers.schedules.LearningRateSchedule:
    """Return a learning rate that falls along a cosine to a hundredth.

    :param initial: Where the cosine begins.
    :param warmup_steps: After how many of the steps, of which some must be left, it begins; until
        then the rate grows in a straight line, from ``initial / warmup_steps``.
    """
    if not warmup_steps:
        return tf_keras.optimizers.schedules.CosineDecay(initial, num_steps, alpha=0.01)
    return tf_keras.optimizers.schedules.CosineDecay(
        initial / warmup_steps,
        num_steps - warmup_steps,
        alpha=0.01,
        warmup_target=initial,
        warmup_steps=warmup_steps,
    )


def paper_learning_rate(num_steps: int) -> tf_keras.optimizers.schedules.LearningRateSchedule:
    """Return the papers' learning rate: 1e-2, and 1e-3 from half way."""
    return tf_keras.optimizers.schedules.PiecewiseConstantDecay([num_steps // 2], [1e-2, 1e-3])


def decayed_rate(initial: float) -> tf_keras.optimizers.schedules.LearningRateSchedule:
    """Return a step size that is multiplied by 0.98 after every 1,000 steps.

    As in Salimbeni, Dutordoir, Hensman and Deisenroth, "Deep Gaussian processes with
    importance-weighted variational inference", 2019, appendix A.

    :param initial: The step size of the first step.
    """
    return tf_keras.optimizers.schedules.ExponentialDecay(initial, 1_000, 0.98, staircase=True)


def kl_weights(steps: tf.Tensor, annealing_steps: int) -> tf.Tensor:
    """Return the weight of the log ratios at each step: from 0 to 1 in a straight line, then 1.

    :param steps: The steps, counted from 0, [T].
    :param annealing_steps: When the weight reaches 1; 0 for no annealing.
    :return: Weights in float64, [T].
    """
    growing = tf.cast(steps, tf.float64) / max(annealing_steps, 1)
    return tf.where(steps < annealing_steps, growing, 1.0)


ProtocolName = Literal["fast", "natural", "networks", "papers", "vmg"]
"""What :func:`fit` takes by name."""


class TrainingProtocol(NamedTuple):
    """A way to train.

    :param optimizer: Makes the optimiser of a model from it and the number of steps.
    :param kl_annealing_steps: When the weight of the log ratios reaches 1, from the model and the
        number of steps.
    :param num_samples: Number of draws that estimate the bound, S; for whoever builds the model.
    :param batch_size: Rows of a minibatch, from the number of training rows, or None for all of
        them.
    """

    optimizer: Callable[
        [VariationalModel, int], Adam | NaturalGradientAdam | tf_keras.optimizers.Optimizer
    ]
    kl_annealing_steps: Callable[[VariationalModel, int], int]
    num_samples: int
    batch_size: Callable[[int], int | None]


def _warm_cosine_with_short_memory(model: VariationalModel, num_steps: int) -> Adam:
    # The first steps' gradients are huge. With the usual 0.999 the mean of squares remembers them
    # for a thousand steps, which keeps all later ones small. With 0.95 and the full rate from the
    # first step on, some deep models lose all signal at once and explain everything as noise.
    warmup_steps = min(200, num_steps // 20)
    return Adam(cosine_learning_rate(num_steps, warmup_steps=warmup_steps), beta_2=0.95)


def _natural_gradients(model: VariationalModel, num_steps: int) -> NaturalGradientAdam:
    if not model.natural_parameters:
        raise ValueError(
            "protocol 'natural' is for a model with natural_parameters, got a "
            f"{type(model).__name__}, which has none."
        )
    return NaturalGradientAdam(model.natural_parameters)


def _fifty_batches(num_rows: int) -> int | None:
    return None if num_rows <= 20 else max(20, num_rows // 50)


def _all_rows_up_to_2000(num_rows: int) -> int | None:
    return None if num_rows <= 2_000 else 1_000


PROTOCOLS: dict[ProtocolName, TrainingProtocol] = {
    "fast": TrainingProtocol(
        _warm_cosine_with_short_memory,
        lambda model, num_steps: num_steps * min(max(model.num_hidden_layers, 1), 3) // 6,
        2,
        _all_rows_up_to_2000,
    ),
    "natural": TrainingProtocol(
        _natural_gradients,
        lambda model, num_steps: 0,
        1,
        lambda num_rows: None if num_rows <= 512 else 512,
    ),
    "papers": TrainingProtocol(
        lambda model, num_steps: Adam(paper_learning_rate(num_steps), epsilon=1e-8),
        lambda model, num_steps: min(1_000, num_steps // 2),
        10,
        _all_rows_up_to_2000,
    ),
    "networks": TrainingProtocol(
        lambda model, num_steps: Adam(cosine_learning_rate(num_steps, 1e-2)),
        lambda model, num_steps: 0,
        1,
        _fifty_batches,
    ),
    "vmg": TrainingProtocol(
        lambda model, num_steps: tf_keras.optimizers.Adam(
            1e-3, epsilon=1e-8, use_ema=True, ema_momentum=0.999
        ),
        lambda model, num_steps: 0,
        1,
        _fifty_batches,
    ),
}
"""``"papers"``: Adam with 1e-2 and, from half way, 1e-3; annealing over the first 1,000 steps, or
the first half of a run of less than 2,000. ``"fast"``: a cosine from 3e-2 to 3e-4, after 200 steps
(at most a twentieth of all) in which the rate grows to that, with a shorter memory of squared
gradients; annealing over the first sixth for each hidden layer, at most the first
half (deep models fall back to the prior with less); two draws instead of ten. Both take all rows at
a step up to 2,000 rows, and 1,000 above.

``"natural"``, for a model with ``natural_parameters``: natural gradients for these and Adam for the
rest, as in :class:`NaturalGradientAdam`, no annealing, and 512 rows at a step (Salimbeni,
Dutordoir, Hensman and Deisenroth, 2019); one draw.

``"vmg"``, for networks: that of Louizos and Welling (2016, section 4), Adam with its usual 1e-3 and
temporal averaging (Kingma and Ba, 2015, section 7.2: the model ends at the iterates' exponential
average with decay 0.999), one draw and no annealing. They print neither steps nor rows of a
minibatch: here 20, or 50 minibatches in an epoch where that makes larger ones. ``"networks"`` has
the same minibatches and a cosine from 1e-2 to 1e-4 without averaging, which takes fewer steps."""
