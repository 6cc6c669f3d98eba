"""What a training run shows while it lasts, and what it leaves behind."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gpflow_dwp.models import VariationalModel
from gpflow_dwp.objectives import BoundTerms

__all__ = [
    "SHOWN_OFFSET",
    "Callback",
    "RunCallback",
    "TrainingHistory",
    "TrainingProgress",
    "joined",
]

SHOWN_OFFSET: ContextVar[float] = ContextVar("SHOWN_OFFSET", default=0.0)
"""What bars add to the bound per datum that they show: a command has it in raw units, as its table
of scores (:attr:`gpflow_dwp.data.Standardiser.log_density_offset`)."""


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


def joined(parts: Sequence[BoundTerms]) -> BoundTerms:
    """Return the terms of all steps, [T] and [T, L], of those of several calls."""
    return BoundTerms(*(np.concatenate(each) for each in zip(*parts, strict=True)))


@dataclass(frozen=True)
class TrainingHistory:
    """What one call of ``fit`` has recorded at each step.

    :param data_term: Expected log likelihood of all data at each step, in nats, [T].
    :param log_ratios: Each layer's log P - log Q at each step, bottom first, in nats, [T, L].
    :param num_data: Size of the training data.
    :param seconds: Wall-clock time, tracing and compiling included.
    :param stop_reason: In words, why training ended.
    :param kl_annealing_steps: When the weight of the log ratios reached 1.
    """

    data_term: npt.NDArray[np.float64]
    log_ratios: npt.NDArray[np.float64]
    num_data: int
    seconds: float
    stop_reason: str
    kl_annealing_steps: int = 0

    def __repr__(self) -> str:
        end = f", elbo_per_datum ends at {self.elbo_per_datum[-1]:.4g}" if self.num_steps else ""
        return (
            f"<TrainingHistory of {self.num_steps} steps in {self.seconds:.1f} s{end}: "
            f"{self.stop_reason}>"
        )

    def followed_by(self, later: TrainingHistory) -> TrainingHistory:
        """Return the history of this run and of one that went on from its end."""
        return replace(
            self,
            data_term=np.concatenate([self.data_term, later.data_term]),
            log_ratios=np.concatenate([self.log_ratios, later.log_ratios]),
            seconds=self.seconds + later.seconds,
            stop_reason=f"{self.stop_reason}, then {later.stop_reason}",
        )

    @property
    def num_steps(self) -> int:
        """How many steps were taken."""
        return len(self.data_term)

    @property
    def elbo(self) -> npt.NDArray[np.float64]:
        """The bound, or a network's objective, without annealing, at each step, in nats, [T]."""
        return self.data_term + self.log_ratios.sum(axis=1)

    @property
    def nats(self) -> npt.NDArray[np.float64]:
        """Each layer's log Q - log P, averaged over the last tenth of the steps, in nats, [L]."""
        return -self.log_ratios[-max(1, self.num_steps // 10) :].mean(axis=0)

    @property
    def elbo_per_datum(self) -> npt.NDArray[np.float64]:
        """The bound divided by the number of data, [T]."""
        return self.elbo / self.num_data
