"""The protocol of callbacks."""

from __future__ import annotations

import abc
from typing import NamedTuple, Protocol

from gpflow_dwp.models import VariationalModel

__all__ = ["Callback", "RunCallback", "TrainingProgress"]


class TrainingProgress(NamedTuple):
    """Where a run stands when a callback is called.

    :param step: Number of steps taken.
    :param num_steps: Number of steps that the run will take.
    :param elbo: The bound, averaged over the steps since the last call, in nats.
    :param model: The model, with its present parameters.
    :param seconds: Wall-clock time of the run, in all its parts if it was resumed.
    """

    step: int
    num_steps: int
    elbo: float
    model: VariationalModel
    seconds: float


class Callback(Protocol):
    """Anything that can be called with a :class:`TrainingProgress`.

    Of several processes that train together each calls its own, which must be the same in all.
    """

    def __call__(self, progress: TrainingProgress) -> bool | None:
        """Look at the run; return True to end it here."""


class RunCallback(abc.ABC):
    """A callback that ``fit`` also tells when a run begins and when it ends.

    One whose state has to survive a run that is cut off derives from
    ``tf.train.experimental.PythonState`` (``serialize``, ``deserialize``) or ``tf.Module``
    (variables) as well: checkpoints hold its state, and a run that goes on has to be given
    callbacks of the same types in the same order. All others begin anew in a run that goes on.
    """

    @abc.abstractmethod
    def __call__(self, progress: TrainingProgress) -> bool | None:
        """Look at the run; return True to end it here."""

    @abc.abstractmethod
    def begin(self, step: int, model: VariationalModel) -> bool | None:
        """Make ready, before the first step, with the state of a checkpoint if there is one.

        :param step: Number of steps that were taken before: 0, or of a run that goes on, more.
        :param model: The model, with its present parameters.
        :return: True to take no step at all.
        """

    @abc.abstractmethod
    def finish(self, model: VariationalModel) -> None:
        """Do what is left to do after the last step and the last checkpoint; not after an error.

        :param model: The model, with its last parameters.
        """
