"""What a training run leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gpflow_dwp.objectives import BoundTerms

__all__ = ["SHOWN_OFFSET", "TrainingHistory", "joined"]

SHOWN_OFFSET: ContextVar[float] = ContextVar("SHOWN_OFFSET", default=0.0)
"""What bars add to the bound per datum that they show: a command has it in raw units, as its table
of scores (:attr:`gpflow_dwp.data.Standardiser.log_density_offset`)."""


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
        """The bound (without annealing) at each step, in nats, [T]."""
        return self.data_term + self.log_ratios.sum(axis=1)

    @property
    def nats(self) -> npt.NDArray[np.float64]:
        """Each layer's log Q - log P, averaged over the last tenth of the steps, in nats, [L]."""
        return -self.log_ratios[-max(1, self.num_steps // 10) :].mean(axis=0)

    @property
    def elbo_per_datum(self) -> npt.NDArray[np.float64]:
        """The bound divided by the number of data, [T]."""
        return self.elbo / self.num_data
