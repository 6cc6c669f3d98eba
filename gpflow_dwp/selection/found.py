"""Models that were fitted to all rows, and what is kept of all that was tried."""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods import HeteroskedasticGaussian
from gpflow_dwp.likelihoods.named import name_of_likelihood
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.neighbours import Index
from gpflow_dwp.selection.candidates import SINGLE, Candidate, Selection, Trial
from gpflow_dwp.selection.comparison import Comparison
from gpflow_dwp.selection.conditioning import condition
from gpflow_dwp.selection.depth import Training
from gpflow_dwp.selection.leave_one_out import leave_one_out, leave_one_out_of_heteroskedastic
from gpflow_dwp.selection.scores import RowScores
from gpflow_dwp.selection.starts import Start, num_lengthscales
from gpflow_dwp.selection.trainer import Trainer
from gpflow_dwp.training import TrainingHistory

__all__ = ["Found", "Trials"]


@dataclasses.dataclass(frozen=True)
class Found:
    """A model that was fitted to all rows.

    :param note: What was done to it in the end, in words; none for nothing.
    """

    model: DeepWishartProcess
    history: TrainingHistory
    trial: Trial
    scores: RowScores | None
    start: Start
    candidate: Candidate
    note: str = ""

    @property
    def row_scores(self) -> RowScores:
        """Its scores; where there are none, those of a model that has not been trained."""
        return self.scores or RowScores.none(1)


@dataclasses.dataclass
class Trials:
    """What was tried.

    :ivar best: What was chosen.
    """

    trainer: Trainer
    trials: list[Trial] = dataclasses.field(default_factory=list)
    best: Found = dataclasses.field(init=False)

    @property
    def has_leave_one_out(self) -> bool:
        """Whether models are scored by what they predict of each row from all others."""
        choice, trainer = self.trainer.choice, self.trainer
        is_regression = choice.output in (None, "regression")
        is_regression &= not trainer.has_missing or trainer.may_have_own_kernels
        return choice.batch_size is None and is_regression

    def found(
        self,
        model: DeepWishartProcess,
        history: TrainingHistory,
        start: Start,
        began: float,
        candidate: Candidate = SINGLE,
        note: str = "",
    ) -> Found:
        """Score and record a model, which began to be fitted at some time."""
        trainer, scores, distribution = self.trainer, None, None
        if self.has_leave_one_out and isinstance(model.output_layer, RegressionGPLayer):
            distribution = leave_one_out(model)
        elif self.has_leave_one_out and isinstance(model.likelihood, HeteroskedasticGaussian):
            distribution = leave_one_out_of_heteroskedastic(model, trainer.X, trainer.Y)
        if distribution is not None:
            scores = RowScores.of(distribution, trainer.Y, trainer.steps)
        return self.kept(model, history, start, scores, began, candidate, note=note)

    def found_deep(self, training: Training) -> Found:
        """Score and record a deep model, by draws as if they had not seen a row."""
        Y, steps = self.trainer.Y, self.trainer.steps
        try:
            scores = RowScores.smoothed(leave_one_out(training.model), Y, steps)
        except (ValueError, np.linalg.LinAlgError):
            scores = RowScores.none(len(Y))
        began, fit = time.perf_counter() - training.seconds, (training.model, training.history)
        return self.kept(*fit, training.start, scores, began, training.candidate)

    def conditioned(self, found: Found, num_neighbours: int, rows: Index | None = None) -> Found:
        """A deep model that predicts from the rows nearest to each point as well.

        :param rows: Which are left out; None for all.
        """
        began, history = time.perf_counter(), found.history
        model, scores, elbo, note = condition(self.trainer, found.model, num_neighbours, rows)
        return self.kept(model, history, found.start, scores, began, found.candidate, elbo, note)

    def kept(
        self,
        model: DeepWishartProcess,
        history: TrainingHistory,
        start: Start,
        scores: RowScores | None,
        began: float,
        candidate: Candidate = SINGLE,
        elbo: float | None = None,
        note: str = "",
    ) -> Found:
        """Record a model, which began to be fitted at some time.

        :param elbo: Its bound; None for an estimate.
        :param note: What was done to it in the end.
        """
        seconds, trainer = time.perf_counter() - began, self.trainer
        tried = start._replace(
            likelihood=model.likelihood,
            elbo=trainer.estimate_bound(model) if elbo is None else elbo,
            num_data=len(trainer.X),
            scores=scores,
        )
        width = None
        if model.hidden_layers:
            width = candidate.width or trainer.choice.width or trainer.X.shape[1]
        trial = self.record(tried, seconds, candidate.depth, width)
        return Found(model, history, trial, scores, start, candidate, note)

    def record(
        self, tried: Start, seconds: float, depth: int = 1, width: int | None = None
    ) -> Trial:
        """Record what was fitted, in so many seconds."""
        is_ard = num_lengthscales(tried.kernel) > 1
        likelihood = name_of_likelihood(tried.likelihood)
        loo = None if tried.scores is None else tried.scores.mean
        fit = tried.num_data, tried.elbo, loo, seconds
        self.trials.append(Trial(depth, tried.name, is_ard, likelihood, width, *fit))
        return self.trials[-1]

    def selection(self, best: Found, *reasons: str | Comparison) -> Selection:
        """What comes of it."""
        self.best = best
        reasons += (best.note,) if best.note else ()
        return Selection(best.model, best.history, best.trial, tuple(self.trials), reasons)
