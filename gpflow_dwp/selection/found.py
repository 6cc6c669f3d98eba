"""Models that were fitted to all rows, and how they compare."""

from __future__ import annotations

import dataclasses

import numpy as np

from gpflow_dwp.evaluation.pareto_smoothing import MOST_K
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.selection.candidates import Candidate, Trial
from gpflow_dwp.selection.scores import RowScores
from gpflow_dwp.selection.starts import Start
from gpflow_dwp.training import TrainingHistory

__all__ = ["Found", "compared"]


@dataclasses.dataclass(frozen=True)
class Found:
    """A model that was fitted to all rows."""

    model: DeepWishartProcess
    history: TrainingHistory
    trial: Trial
    scores: RowScores | None
    start: Start
    candidate: Candidate

    @property
    def row_scores(self) -> RowScores:
        """Its scores; where there are none, those of a model that has not been trained."""
        return self.scores or RowScores.none(1)


def compared(what: str, how: str, deep: Found, single: Found) -> str:
    """Say how one predicts beside the other."""
    (a, b), (c, d) = deep.row_scores.mean, single.row_scores.mean
    k_hat = deep.row_scores.k_hat
    rough = 0.0 if k_hat is None else np.mean(k_hat > MOST_K)
    return (
        f"{what} predicts each row from all others {how} depth {len(single.model.layers)}: log "
        f"density {a:.3f} and {c:.3f}, CRPS {b:.3g} and {d:.3g}, standardised; the deeper one's "
        f"scores are rough for {rough:.0%} of the rows (k̂ > {MOST_K})."
    )
