"""Schedules: of the learning rate, and of the weight of the log ratios."""

from __future__ import annotations

import tensorflow as tf
from gpflow.keras import tf_keras

from gpflow_dwp.validation import check_integers

__all__ = ["cosine_learning_rate", "decayed_rate", "kl_weights", "paper_learning_rate"]


def cosine_learning_rate(
    num_steps: int, initial: float = 3e-2, *, warmup_steps: int = 0
) -> tf_keras.optimizers.schedules.LearningRateSchedule:
    """Return a learning rate that falls along a cosine to a hundredth.

    :param initial: Where the cosine begins.
    :param warmup_steps: After how many of the steps it begins; until then the rate grows in a
        straight line, from ``initial / warmup_steps``.
    :raises ValueError: If ``warmup_steps`` is not an integer from 0 to ``num_steps - 1``.
    """
    check_integers(at_least=0, warmup_steps=warmup_steps)
    if not warmup_steps:
        return tf_keras.optimizers.schedules.CosineDecay(initial, num_steps, alpha=0.01)
    if warmup_steps >= num_steps:
        raise ValueError(f"warmup_steps must be below num_steps={num_steps}, got {warmup_steps}.")
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
