"""The protocol of callbacks."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from gpflow_dwp.models import MixtureModel

__all__ = ["Callback", "TrainingProgress"]


class TrainingProgress(NamedTuple):
    """Where a run stands when a callback is called.

    :param step: Number of steps taken.
    :param num_steps: Number of steps that the run will take.
    :param elbo: The bound, averaged over the steps since the last call, in nats.
    :param model: The model, with its present parameters.
    """

    step: int
    num_steps: int
    elbo: float
    model: MixtureModel


class Callback(Protocol):
    """Anything that can be called with a :class:`TrainingProgress`."""

    def __call__(self, progress: TrainingProgress) -> bool | None:
        """Look at the run; return True to end it here."""
