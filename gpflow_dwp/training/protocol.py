"""How a model is trained where nothing else is asked for: optimiser, schedules, draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from gpflow.keras import tf_keras

from gpflow_dwp.training.adam import Adam
from gpflow_dwp.training.schedule import paper_learning_rate

__all__ = ["PROTOCOLS", "Protocol", "ProtocolName", "default_batch_size"]

ProtocolName = Literal["fast", "papers"]
"""What :func:`fit` takes by name."""

_LARGEST_FULL_BATCH = 2_000
_BATCH_SIZE = 1_000


def default_batch_size(num_rows: int) -> int | None:
    """Return how many rows a minibatch has, where nothing else is asked for.

    :param num_rows: Training rows.
    :return: None, for all rows at every step, up to 2,000 rows; 1,000 above.
    """
    return _BATCH_SIZE if num_rows > _LARGEST_FULL_BATCH else None


class Protocol(NamedTuple):
    """A way to train.

    :param learning_rate: Makes the schedule of Adam's learning rate from the number of steps.
    :param beta_2: Adam's decay of the mean of squared gradients.
    :param kl_annealing_steps: When the weight of the log ratios reaches 1, from the number of
        steps.
    :param num_samples: S, the draws that estimate the bound; for whoever builds the model.
    """

    learning_rate: Callable[[int], tf_keras.optimizers.schedules.LearningRateSchedule]
    beta_2: float
    kl_annealing_steps: Callable[[int], int]
    num_samples: int

    def optimizer(self, num_steps: int) -> Adam:
        """Return the optimiser of a run of ``num_steps`` steps."""
        return Adam(self.learning_rate(num_steps), beta_2=self.beta_2)


def _cosine_learning_rate(num_steps: int) -> tf_keras.optimizers.schedules.LearningRateSchedule:
    return tf_keras.optimizers.schedules.CosineDecay(3e-2, num_steps, alpha=0.01)


PROTOCOLS: dict[ProtocolName, Protocol] = {
    # The first steps' gradients are huge. With the usual 0.999 the mean of squares remembers them
    # for a thousand steps, which keeps all later ones small.
    "fast": Protocol(_cosine_learning_rate, 0.98, lambda num_steps: num_steps // 6, 2),
    "papers": Protocol(
        paper_learning_rate, 0.999, lambda num_steps: min(1_000, num_steps // 2), 10
    ),
}
"""``"papers"``: Adam with 1e-2 and, from half way, 1e-3; annealing over the first 1,000 steps, or
the first half of a run of less than 2,000. ``"fast"``: a cosine from 3e-2 to 3e-4 with a shorter
memory of squared gradients; annealing over the first sixth; two draws instead of ten."""
