"""Deep candidates: started plain, trained side by side, and dropped against each other."""

from __future__ import annotations

import dataclasses
import itertools
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

__all__ = ["Training", "begin_deep", "halve"]

_DEEP_KERNELS = ("SquaredExponential", "Matern52")
_ONE_STAGE = ((1.0, None),)
_DRAWS = 40


@dataclasses.dataclass
class Training:
    """A deep model in training.

    :param candidate: What it is.
    :param start: The single layer that it starts from.
    :param model: The model, at the best values that were met.
    :param scores: Leave-one-out scores of its rows, once there are some, without CRPS.
    :param histories: Of its training, one for each stage.
    :param seconds: That it took.
    """

    candidate: Candidate
    start: Start
    model: DeepWishartProcess
    scores: RowScores = dataclasses.field(default_factory=lambda: RowScores.none(1))
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


def begin_deep(trainer: Trainer, plain: Sequence[Start], *, is_asked_for: bool) -> list[Training]:
    """Begin to train deep candidates, from the single layers of their kernels, or the best one.

    :param plain: Fitted single layers, best first.
    :param is_asked_for: Whether nothing else is tried: then one kernel gets a single ν.
    """
    trainings = []
    for candidate in _candidates(trainer, plain, is_asked_for):
        names = candidate.kernels[:1] or [plain[0].name]
        start = next(start for start in plain if start.name in names)
        trainings.append(Training(candidate, start, trainer.build(start, candidate)))
    return trainings


def _candidates(trainer: Trainer, plain: Sequence[Start], is_asked_for: bool) -> list[Candidate]:
    choice, (num_data, num_inputs), chosen = trainer.choice, trainer.X.shape, plain
    if choice.candidates is not None:
        return [each for each in choice.candidates if each.depth > 1]
    are_several = len({start.name for start in plain}) > 1
    if are_several:
        best = plain[0]
        base = best.name.removeprefix("Additive").removeprefix("Levels")
        chosen = [start for start in chosen if start.name in _DEEP_KERNELS]
        if base != best.name:  # Of inputs: for the first layer where it is ahead.
            chosen = [best, *(start for start in chosen if start.name != base)]
        chosen = chosen or [best]
        if num_data > policy.FEW_ROWS:
            chosen = chosen[:1]
    widths: list[int | None] = [choice.width]
    if widths == [None] and num_inputs >= policy.ROOM:
        widths = [policy.ROOM]
    elif widths == [None] and (are_several or not is_asked_for):
        widths = [None, policy.ROOM]
    return [
        Candidate(depth=max(2, choice.depths[0]), kernel=name, width=width)
        for name in dict.fromkeys(start.name for start in chosen)
        for width in widths
    ]


def halve(
    trainer: Trainer, trainings: list[Training], single: RowScores | None, num_steps: int
) -> Training | None:
    """Train candidates in stages, keep the better ones of each, and return the last.

    :param single: Scores of the best single layer, of all rows: candidates that are on no way to
        become better end before the last stage, and so do all, of many rows, where that would make
        no difference: jumps that few show may be found late. None for no such rule.
    :param num_steps: Gradient steps of the last one, at most.
    :return: None where no candidate is left.
    """
    only_one, taken = single is None and len(trainings) == 1, 0
    are_many = len(trainer.X) > policy.ROWS_FOR_STARTS
    stages = _ONE_STAGE if only_one else policy.STAGES
    racing = [(training, _Way(trainer, single, num_steps)) for training in trainings]
    for stage, (share, most) in enumerate(stages):
        if not (stage == 1 and len(trainer.X) <= policy.FEW_ROWS):
            racing = sorted(racing, key=lambda pair: -pair[0].log_density)[:most]
        size = max(1, round(share * num_steps))
        taken += size
        for training, way in racing:
            annealing = 0.0 if stage else policy.ANNEALING_OF_ONE if only_one else None
            looks = [way.look(size)] if single is not None and not stage and are_many else []
            _train(trainer, training, size, looks, annealing)
            way.follow(taken, training.scores)
        is_last = stage == len(stages) - 1
        racing = [
            (training, way)
            for training, way in racing
            if np.isfinite(training.log_density) and (is_last or way.leads_past)
        ]
        if not racing:
            return None
        if are_many and not any(way.leads_on for _, way in racing):
            break
    return max((training for training, _ in racing), key=lambda training: training.log_density)


class _Way:
    """How far a candidate is ahead of a single layer, if any, and where that leads.

    Curves of learning are concave over the logarithm of steps: what the last doubling has gained is
    the most that a further one will. That is told at the ends of stages: in the middle of one steps
    are large, and scores may be lower than at its begin.

    :ivar leads_past: Whether the candidate may gain enough in all steps to be kept.
    :ivar leads_on: Whether further steps may gain as much as makes a difference.
    """

    def __init__(self, trainer: Trainer, single: RowScores | None, num_steps: int) -> None:
        self._trainer, self._single, self._num_steps = trainer, single, num_steps
        self._last = 0, -np.inf
        self.leads_past = self.leads_on = True

    def follow(self, steps: int, scores: RowScores) -> None:
        """Take in scores after so many steps."""
        if self._single is None:
            return
        lead = float(np.sum(scores.log_density - self._single.log_density))
        (before, lead_before), self._last = self._last, (steps, lead)
        if not before:
            return
        doublings = np.log(self._num_steps / steps) / np.log(steps / before)
        further = max(lead - lead_before, 0.0) * doublings
        least = policy.LEVEL_NATS * len(self._single.log_density)
        self.leads_past, self.leads_on = bool(lead + further > least), bool(further > least)

    def look(self, num_steps: int) -> Callback:
        """What takes in scores half-way through the first stage, and never ends it.

        :param num_steps: Of the stage.
        """
        count = itertools.count(1)

        def callback(progress: TrainingProgress) -> bool:
            if next(count) == LOOKS // 2:
                self.follow(num_steps // 2, _scores(self._trainer, progress.model))
            return False

        return callback


def _scores(trainer: Trainer, model: DeepWishartProcess) -> RowScores:
    left_out = leave_one_out(model, _DRAWS)
    return RowScores.smoothed(left_out, trainer.Y, trainer.steps, has_crps=False)


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
