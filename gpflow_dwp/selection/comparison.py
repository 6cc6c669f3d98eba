"""How one model predicts rows beside another: an object with its numbers, and its sentence."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from gpflow_dwp.pareto_smoothing import MOST_K
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.scores import LeaveOneOut, RowScores, gains, is_better, standard_error

__all__ = ["Comparison", "compare"]

# Of differences that are the same.
_ROUNDING = 1e-6

Verdict = Literal["better", "not clearly better", "no better"]


class Comparison(NamedTuple):
    """How one model predicts each of some rows from all others, beside another model.

    :param what: Which model has to prove itself.
    :param than: Which the other one is.
    :param new: Mean scores of the first, in the model's units.
    :param old: Mean scores of the other.
    :param gain: Of mean log density, in nats a row, where each counts for 20 at most.
    :param error: The standard error of that, of paired rows.
    :param rough: The share of rows whose smoothed scores are rough, as k̂ is above 0.7.
    :param verdict: What is said of it.
    :param is_kept: Whether the first is kept.
    :param num_rows: How many rows were left out; None for all.
    """

    what: str
    than: str
    new: LeaveOneOut
    old: LeaveOneOut
    gain: float
    error: float
    rough: float
    verdict: Verdict
    is_kept: bool
    num_rows: int | None = None

    def sentence(self, scale: float | None = None) -> str:
        """Say it.

        :param scale: The deviation by which observations were standardised; None for scores in
            the model's units.
        """
        shift, factor = (0.0, 1.0) if scale is None else (-np.log(scale), scale)
        (a, b), (c, d) = self.new, self.old
        limit = ""
        if abs(self.gain - (a - c)) > _ROUNDING:
            limit = f", where no row counts for more than {policy.MOST_NATS_OF_A_ROW:g}"
        rows = "each row" if self.num_rows is None else f"each of {self.num_rows:,} rows"
        said = (
            f"{self.what} predicts {rows} from all others {self.verdict} than {self.than}: log "
            f"density {a + shift:.3f} and {c + shift:.3f} (a difference of {self.gain:.3f} ± "
            f"{self.error:.3f}{limit}), CRPS {b * factor:.3g} and {d * factor:.3g}"
            f"{', standardised' if scale is None else ''}."
        )
        if self.rough:
            said += f" Its scores are rough for {self.rough:.0%} of the rows (k̂ > {MOST_K})."
        if self.verdict == "better" and not self.is_kept:
            said += " It is not kept, as its bound is far below a plain process's."
        return said


def compare(
    what: str,
    than: str,
    scores: RowScores,
    reference: RowScores,
    *,
    may_be_kept: bool = True,
    num_rows: int | None = None,
) -> Comparison:
    """Compare two models by scores of the same rows.

    :param what: Which model has to prove itself.
    :param than: Which the other one is.
    :param scores: Of the first.
    :param reference: Of the other one.
    :param may_be_kept: Whether nothing else speaks against it.
    :param num_rows: How many rows were left out; None for all.
    """
    gain = gains(scores, reference)
    verdict: Verdict = "no better"
    if gain.mean() > 0.0:
        verdict = "better" if is_better(scores, reference) else "not clearly better"
    rough = 0.0 if scores.k_hat is None else float(np.mean(scores.k_hat > MOST_K))
    is_kept, means = verdict == "better" and may_be_kept, (scores.mean, reference.mean)
    numbers = float(gain.mean()), standard_error(gain), rough
    return Comparison(what, than, *means, *numbers, verdict, is_kept, num_rows)
