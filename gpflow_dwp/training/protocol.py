"""How a model is trained where nothing else is asked for: optimiser, schedules, draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from gpflow.keras import tf_keras

from gpflow_dwp.training.adam import Adam
from gpflow_dwp.training.schedule import paper_learning_rate

__all__ = ["PROTOCOLS", "Protocol", "ProtocolName"]

ProtocolName = Literal["fast", "papers", "vmg"]
"""What :func:`fit` takes by name."""


class Protocol(NamedTuple):
    """A way to train.

    :param learning_rate: Makes the schedule of Adam's learning rate from the number of steps.
    :param beta_2: Adam's decay of the mean of squared gradients.
    :param kl_annealing_steps: When the weight of the log ratios reaches 1, from the number of
        steps.
    :param num_samples: S, the draws that estimate the bound; for whoever builds the model.
    :param batch_size: Rows of a minibatch, from the number of training rows, or None for all of
        them; for whoever calls :func:`fit`.
    """

    learning_rate: Callable[[int], tf_keras.optimizers.schedules.LearningRateSchedule]
    beta_2: float
    kl_annealing_steps: Callable[[int], int]
    num_samples: int
    batch_size: Callable[[int], int | None]

    def optimizer(self, num_steps: int) -> Adam:
        """Return the optimiser of a run of ``num_steps`` steps."""
        return Adam(self.learning_rate(num_steps), beta_2=self.beta_2)


def _cosine(
    start: float,
) -> Callable[[int], tf_keras.optimizers.schedules.LearningRateSchedule]:
    return lambda num_steps: tf_keras.optimizers.schedules.CosineDecay(start, num_steps, alpha=0.01)


def _all_rows_up_to_2000(num_rows: int) -> int | None:
    return None if num_rows <= 2_000 else 1_000


def _fifty_batches(num_rows: int) -> int | None:
    return max(20, num_rows // 50)


PROTOCOLS: dict[ProtocolName, Protocol] = {
    # The first steps' gradients are huge. With the usual 0.999 the mean of squares remembers them
    # for a thousand steps, which keeps all later ones small.
    "fast": Protocol(
        _cosine(3e-2), 0.98, lambda num_steps: num_steps // 6, 2, _all_rows_up_to_2000
    ),
    "papers": Protocol(
        paper_learning_rate,
        0.999,
        lambda num_steps: min(1_000, num_steps // 2),
        10,
        _all_rows_up_to_2000,
    ),
    "vmg": Protocol(_cosine(1e-2), 0.999, lambda num_steps: 0, 1, _fifty_batches),
}
"""``"papers"``: Adam with 1e-2 and, from half way, 1e-3; annealing over the first 1,000 steps, or
the first half of a run of less than 2,000. ``"fast"``: a cosine from 3e-2 to 3e-4 with a shorter
memory of squared gradients; annealing over the first sixth; two draws instead of ten. Both take all
rows at a step up to 2,000 rows, and 1,000 above.

``"vmg"``: for matrix-Gaussian networks, after Louizos and Welling (2016, section 4): one draw, no
annealing, small minibatches (of 20 rows, or 50 in an epoch where that makes larger ones), and many
steps. In place of their constant rate of 1e-3 and an average of the iterates it has a cosine from
1e-2 to 1e-4, which takes fewer steps."""
