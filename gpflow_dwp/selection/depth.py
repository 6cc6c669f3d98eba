"""Deep candidates: started plain, trained side by side, and dropped against each other."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Sequence

import numpy as np
from gpflow.utilities import multiple_assign, read_values

from gpflow_dwp.exceptions import CholeskyError, CollapseWarning, NonFiniteBoundError
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.candidates import Candidate
from gpflow_dwp.selection.leave_one_out import leave_one_out
from gpflow_dwp.selection.scores import RowScores
from gpflow_dwp.selection.starts import Start
from gpflow_dwp.selection.trainer import Trainer
from gpflow_dwp.training import Callback, TrainingHistory, TrainingProgress
from gpflow_dwp.training.early_stopping import LOOKS

__all__ = ["Training", "deep_candidates", "halve", "training_of"]

_DEEP_KERNELS = ("SquaredExponential", "Matern52")
_ONE_STAGE = ((1.0, None),)
# What is behind by CRPS by less than this share is ahead.
_LESS = 0.98
_DRAWS = 40


@dataclasses.dataclass
class Training:
    """A deep model in training.

    :param candidate: What it is.
    :param start: The single layer that it starts from.
    :param model: The model, at the best values that were met.
    :param scores: Leave-one-out scores of its rows.
    :param histories: Of its training, one for each stage.
    :param seconds: That it took.
    """

    candidate: Candidate
    start: Start
    model: DeepWishartProcess
    scores: RowScores
    histories: list[TrainingHistory] = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    @property
    def log_density(self) -> float:
        """What models in training are compared by."""
        return float(self.scores.log_density.mean()) if self.scores.is_sane else -np.inf

    @property
    def history(self) -> TrainingHistory:
        """All of its training."""
        first, *others = self.histories
        for other in others:
            first = first.followed_by(other)
        return first


def training_of(trainer: Trainer, candidate: Candidate, plain: Sequence[Start]) -> Training:
    """Begin to train a candidate, from the single layer that has its kernel, or the best one.

    :param plain: Fitted single layers, best first.
    """
    names = candidate.kernels[:1] or [plain[0].name]
    start = next(start for start in plain if start.name in names)
    nothing = RowScores.none(len(trainer.X))
    return Training(candidate, start, trainer.build(start, candidate), nothing)


def deep_candidates(
    trainer: Trainer, plain: Sequence[Start], depth: int, *, is_asked_for: bool
) -> list[Candidate]:
    """What is tried of a depth where no list of candidates is given.

    :param plain: Fitted single layers, best first.
    :param is_asked_for: Whether there is nothing to choose, so that a single ν is taken.
    """
    num_data, num_inputs = trainer.X.shape
    chosen = plain
    if len({start.name for start in plain}) > 1:
        best, base = plain[0], plain[0].name.removeprefix("Additive")
        chosen = [start for start in chosen if start.name in _DEEP_KERNELS]
        if base != best.name:  # A sum is for the first layer where it is ahead.
            chosen = [best, *(start for start in chosen if start.name != base)]
        chosen = chosen or [best]
        if num_data > policy.FEW_ROWS:
            chosen = chosen[:1]
    widths: list[int | None] = [trainer.choice.width]
    if widths == [None] and num_inputs >= policy.ROOM:
        widths = [policy.ROOM]
    elif widths == [None] and not is_asked_for:
        widths = [None, policy.ROOM]
    return [
        Candidate(depth=depth, kernel=name, width=width)
        for name in dict.fromkeys(start.name for start in chosen)
        for width in widths
    ]


def halve(
    trainer: Trainer,
    trainings: list[Training],
    single: RowScores | None,
    num_steps: int,
    plain: float = np.inf,
) -> Training | None:
    """Train candidates in stages, keep the better ones of each, and return the last.

    :param single: Scores of the best single layer, of all rows: candidates that are far below it
        after the first stage, or below it later, go no further. None for no such rule.
    :param num_steps: Gradient steps of the last one, at most.
    :param plain: Mean log density of the best single layer without a warp.
    :return: None where no candidate is left.
    """
    only_one = single is None and len(trainings) == 1
    for stage, (share, most) in enumerate(_ONE_STAGE if only_one else policy.STAGES):
        if not (stage == 1 and len(trainer.X) <= policy.FEW_ROWS):
            trainings = sorted(trainings, key=lambda training: -training.log_density)[:most]
        reaches = policy.REACH_OF_FEW if len(trainer.X) <= policy.FEW_ROWS else policy.REACH
        reach = reaches[min(stage, len(reaches) - 1)]
        may_follow = stage == 0 and len(trainer.X) <= policy.ROWS_FOR_STARTS
        if may_follow:
            reach = max(reach, policy.REACH_IN_A_ROW * len(trainer.X))
        kept = []
        for training in trainings:
            pace = None
            if stage == 0 and single is not None and len(trainer.X) > policy.FEW_ROWS:
                pace = _Pace(trainer, single, reach)
            num_stage = max(1, round(share * num_steps))
            annealing = 0.0 if stage else policy.ANNEALING_OF_ONE if only_one else None
            _train(trainer, training, num_stage, [] if pace is None else [pace], annealing)
            near = reach
            if may_follow and training.log_density > plain:
                near = max(reach, policy.REACH_OF_PLAIN * len(trainer.X))
            is_near = single is None or _in_reach(training.scores, single, near)
            is_stuck = pace is not None and pace.has_ended_behind(training.scores)
            if np.isfinite(training.log_density) and is_near and not is_stuck:
                kept.append(training)
        trainings = kept
        if not trainings:
            return None
    return max(trainings, key=lambda training: training.log_density)


def _in_reach(scores: RowScores, single: RowScores, reach: float) -> bool:
    is_near = _gain(scores, single) > -reach
    return is_near or float(scores.crps.mean()) < float(single.crps.mean())


def _gain(scores: RowScores, single: RowScores) -> float:
    return float(np.sum(scores.log_density - single.log_density))


class _Pace:
    """Ends a first stage half-way where all of it would not come near a single layer.

    That is so, with many rows, of a model out of reach which the second quarter brought nearer by
    less than a quarter of what is missing.
    """

    def __init__(self, trainer: Trainer, single: RowScores, reach: float) -> None:
        self._trainer, self._single, self._reach = trainer, single, reach
        self._num_calls, self._missing = 0, np.inf

    def __call__(self, progress: TrainingProgress) -> bool:
        self._num_calls += 1
        are_many = len(self._single.crps) > policy.ROWS_FOR_STARTS
        is_quarter, is_half = (self._num_calls == LOOKS // n for n in (4, 2))
        if not (is_half or (is_quarter and are_many)):
            return False
        scores = _scores(self._trainer, progress.model)
        before, self._missing = self._missing, -_gain(scores, self._single)
        is_slow = are_many and before - self._missing < 0.25 * self._missing
        return is_slow and not _in_reach(scores, self._single, self._reach)

    def has_ended_behind(self, scores: RowScores) -> bool:
        """Whether the second half has gained next to nothing, where the model is not ahead."""
        missing = -_gain(scores, self._single)
        is_ahead = scores.crps.mean() < _LESS * self._single.crps.mean()
        is_still = self._missing - missing < policy.NATS_OF_HALF_A_STAGE
        return bool(is_still and not is_ahead and missing > -policy.NATS_OF_HALF_A_STAGE)


def _scores(trainer: Trainer, model: DeepWishartProcess) -> RowScores:
    return RowScores.of(leave_one_out(model, _DRAWS), trainer.Y, trainer.steps)


def _train(
    trainer: Trainer,
    training: Training,
    num_steps: int,
    callbacks: Sequence[Callback],
    annealing: float | None,
) -> None:
    """Take steps, and go back to where they began if they made it worse."""
    began, before = time.perf_counter(), read_values(training.model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CollapseWarning)  # it may not be kept
            history = trainer.take_steps(
                training.model,
                num_steps,
                annealing=annealing,
                seed=len(training.histories),
                callbacks=callbacks,
            )
        scores = _scores(trainer, training.model)
    except (CholeskyError, NonFiniteBoundError, np.linalg.LinAlgError, ValueError):
        scores = None
    if scores is not None and (
        not training.histories or scores.log_density.mean() >= training.log_density
    ):
        training.scores = scores
        training.histories.append(history)
    else:
        multiple_assign(training.model, before)
    training.seconds += time.perf_counter() - began
