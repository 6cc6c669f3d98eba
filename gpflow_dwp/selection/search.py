"""The search for a model: single layers, then depth, and what each of them predicts."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np
from gpflow.likelihoods import Likelihood
from threadpoolctl import threadpool_limits

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation.pareto_smoothing import MOST_K, without_own_row
from gpflow_dwp.exceptions import CholeskyError, NonFiniteBoundError
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods import HeteroskedasticGaussian
from gpflow_dwp.likelihoods.named import is_noise_free, name_of_likelihood
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.selection.candidates import SINGLE, Candidate, Selection, Trial
from gpflow_dwp.selection.choice import CANDIDATE_KERNELS, Choice, Effort, is_auto
from gpflow_dwp.selection.depth import Training, deep_candidates, halve, training_of
from gpflow_dwp.selection.found import Found, compared
from gpflow_dwp.selection.kernel_posterior import draw_kernel_of
from gpflow_dwp.selection.leave_one_out import leave_one_out, leave_one_out_of_heteroskedastic
from gpflow_dwp.selection.observations import is_recorded_finely
from gpflow_dwp.selection.outputs import criterion, may_have_own_kernels, model_of_outputs
from gpflow_dwp.selection.scores import RowScores, is_better, no_worse, varies
from gpflow_dwp.selection.single_layers import SingleLayers
from gpflow_dwp.selection.starts import Start, num_lengthscales
from gpflow_dwp.selection.trainer import Trainer
from gpflow_dwp.training import TrainingHistory

__all__ = ["Search"]

# Gradient steps: of a deep regression, by effort; of one with more rows than these, and less above
# 1.7 times as many; and of any other model, of numbers with minibatches.
_STEPS: dict[Effort, int] = {"quick": 3_000, "default": 3_000, "thorough": 8_000}
_STEPS_OF_MANY, _MANY_ROWS = 2_500, 500
_STEPS_OF_OTHERS, _STEPS_OF_BATCHES = 1_000, 600
# What is left of a model that gradient steps train, after the first stage, has to be so near to the
# best one, in nats a row.
_FIRST_STAGE = 0.4
_NATS_IN_REACH = 0.02
# A bound that is lower than a plain process's by so many nats a row is of a posterior that has run
# away from the prior, and leave-one-out scores given its draws are too good.
_NATS_OF_FIT = 0.25
# Where observations are missing, single layers start from rows that have all, if so many do.
_FEWEST_WHOLE_ROWS = 20


@dataclasses.dataclass
class Search:
    """What was tried, and how.

    :ivar plain: Single layers with Gaussian noise or none, best first.
    :ivar start: The best one of any likelihood.
    :ivar single: The same, fitted to all rows; None where depth is asked for.
    :ivar best: What was chosen.
    """

    trainer: Trainer
    trials: list[Trial] = dataclasses.field(default_factory=list)
    plain: list[Start] = dataclasses.field(init=False)
    start: Start = dataclasses.field(init=False)
    single: Found | None = dataclasses.field(init=False)
    best: Found = dataclasses.field(init=False)

    # Beside busy processes several threads of OpenBLAS would spin until each has had its turn.
    @threadpool_limits.wrap(limits=1, user_api="blas")
    def of_numbers(self) -> Selection:
        """Choose among models of numbers."""
        trainer, choice = self.trainer, self.choice
        likelihood, given = str(choice.likelihood), choice.candidates
        X, Y, weights = trainer.X, trainer.Y, trainer.weights_of_kernels
        is_whole = ~np.isnan(Y).any(axis=1)
        if is_whole.sum() >= min(len(X), _FEWEST_WHOLE_ROWS):
            X, Y = X[is_whole], Y[is_whole]
            weights = None if weights is None else weights[is_whole]
        else:
            Y = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
        singles = self.single_layers(X, Y, weights)
        names, are_free = self._single_kernels()
        plain = singles.plain(names)
        heteroskedastic = trainer.heteroskedastic(plain[0])
        if likelihood == "heteroskedastic":
            return self.by_bound(lambda _: heteroskedastic)
        if are_free:
            plain = singles.with_sums(plain)
        first = [each.kernels for each in given or () if each.depth == 1]
        ones = [each for each in plain if not all(first) or (each.name,) in first] or plain
        start = (
            singles.best_likelihood(ones)
            if likelihood == "auto"
            else singles.with_likelihood(ones[0], likelihood)
        )
        self.plain, self.start = plain, start
        may_vary = likelihood == "auto" and choice.output != "regression" and is_whole.all()
        if not self._has_leave_one_out:
            by_name = {each.name: each for each in reversed(plain)}
            return self.by_bound(
                lambda each: by_name[each.kernels[0]] if each.kernels else start,
                heteroskedastic if may_vary else None,
                plain,
            )
        best = single = self._single(start) if 1 in choice.depths else None
        reason = (
            "A single layer was asked for."
            if choice.depth == 1
            else "Only single layers were tried."
        )
        if single is not None and may_have_own_kernels(self.trainer):
            best = self._with_own_kernels(plain, start, single)
            if best is not single:
                reason = compared("A kernel for each output", "better than", best, single)
                single = best
        self.single = single
        if best is None or choice.depths[-1] > 1:
            if likelihood not in ("auto", "gaussian", "noise_free"):
                plain = [singles.with_likelihood(each, likelihood) for each in plain if given]
                plain = plain or [start]
            best, reason = self._deepen(single, plain)
        if best is single and may_vary and varies(single.row_scores.squares, trainer.X):
            best = self._compare_bounds(best, heteroskedastic)
            if best is not single:
                reason = _HETEROSKEDASTIC
        began = time.perf_counter()
        is_drawn, remark = draw_kernel_of(self.trainer, best.model)
        if is_drawn:
            best = self._found(best.model, best.history, best.start, began)
        return self.selection(best, " ".join(filter(None, [reason, remark])))

    def single_layers(self, X: Array, Y: Array, weights: Array | None) -> SingleLayers:
        """What fits single layers to some of the data, or all."""
        choice, trainer = self.choice, self.trainer
        return SingleLayers(
            X,
            Y,
            weights,
            trainer.steps,
            choice.most_iterations,
            trainer.seed,
            choice.likelihood == "noise_free",
            self._record_start,
            choice.row_means,
        )

    @property
    def choice(self) -> Choice:
        """What is asked for."""
        return self.trainer.choice

    def _single_kernels(self) -> tuple[list[str], bool]:
        """Names of kernels that single layers are fitted with, and whether others are free, too."""
        choice, names = self.choice, list(CANDIDATE_KERNELS)
        if choice.likelihood == "noise_free" and self.trainer.X.shape[1] > 1:
            names.append("SeparableMatern52")
        if not is_auto(choice.kernel):
            return [choice.kernel], False
        first = [each.kernels[:1] for each in choice.candidates or [Candidate()]]
        are_free = not all(first)
        given = [name for each in first for name in each]
        return [*dict.fromkeys(given + names * are_free)], are_free

    @property
    def _has_leave_one_out(self) -> bool:
        is_regression = self.choice.output != "pseudo_targets" and not self.trainer.has_missing
        return self.choice.batch_size is None and is_regression

    def _with_own_kernels(self, plain: Sequence[Start], shared: Start, best: Found) -> Found:
        """The better one of a model with one kernel and one with a kernel for each output.

        Scores are not enough: more parameters are fitted to the rows that they are of.
        """
        began = time.perf_counter()
        model, history, start = model_of_outputs(self.trainer, plain, shared)
        other = self._found(model, history, start, began)
        gain = other.trial.elbo - best.trial.elbo
        if not gain > criterion(model) - criterion(best.model):
            return best
        have_scores = other.scores is not None and best.scores is not None
        return best if have_scores and not is_better(other.row_scores, best.row_scores) else other

    def _single(self, start: Start) -> Found:
        """Fit a single layer to all rows."""
        began = time.perf_counter()
        model = self.trainer.build(start, SINGLE)
        if self.trainer.Y.shape[1] == 1 or is_noise_free(start.likelihood):
            history = self.trainer.fit_single_layer(model, start)
        else:  # each output has a noise of its own
            history = self.trainer.take_steps(model, self._steps // 2)
        return self._found(model, history, start, began)

    def _deepen(self, single: Found | None, plain: list[Start]) -> tuple[Found, str]:
        """Train deep candidates, and compare the last of them with a single layer."""
        scores = None if single is None else single.scores
        choice, trainer, num_data = self.choice, self.trainer, len(self.trainer.X)
        steps = choice.num_steps or _STEPS[choice.effort]
        if choice.num_steps is None and choice.effort == "default" and num_data > _MANY_ROWS:
            steps = round(_STEPS_OF_MANY * min(1.0, 1.7 * _MANY_ROWS / num_data))
        if choice.candidates is None:
            is_asked_for = single is None and len({start.name for start in plain}) == 1
            first = max(2, choice.depths[0])
            tried = deep_candidates(trainer, plain, first, is_asked_for=is_asked_for)
        else:
            tried = [each for each in choice.candidates if each.depth > 1]
        trainings = [training_of(trainer, each, plain) for each in tried]
        of_plain = plain[0].scores
        plain_density = np.inf if of_plain is None else of_plain.mean.log_density
        training = halve(trainer, trainings, scores, steps, plain_density)
        for other in trainings:
            if other is not training and other.histories:
                self._found_deep(other)
        if training is None:
            if single is None:
                raise CholeskyError("No deep model could be trained: none had a finite bound.")
            return single, _SINGLE_AHEAD
        deep = self._found_deep(training)
        depth = deep.trial.depth
        if single is None or scores is None:
            if choice.candidates is None:
                return deep, f"Depth {depth} was asked for."
            return deep, "No other candidate predicts each row from all others better."
        least = num_data * (plain[0].elbo / plain[0].num_data - _NATS_OF_FIT)
        surely = is_noise_free(plain[0].likelihood)
        is_ahead = deep.row_scores.mean.log_density > scores.mean.log_density
        is_clear = is_ahead and is_better(training.scores, scores, surely=surely)
        if deep.trial.elbo < least or not is_clear:
            how = "not clearly better than" if is_ahead else "no better than"
            return single, compared(f"Depth {depth}", how, deep, single)
        best, reason = deep, compared(f"Depth {depth}", "better than", deep, single)
        for deeper in choice.depths[2:] if choice.candidates is None else ():
            candidate = dataclasses.replace(training.candidate, depth=deeper)
            model = trainer.deepened(training.start, candidate, best.model)
            last = Training(candidate, training.start, model, RowScores.none(num_data))
            if halve(trainer, [last], training.scores, steps) is None:
                break
            found = self._found_deep(last)
            is_ahead = found.row_scores.mean.log_density > best.row_scores.mean.log_density
            if not (is_ahead and is_better(last.scores, training.scores, surely=surely)):
                break
            reason = compared(f"Depth {deeper}", "better than", found, best)
            best, training = found, last
        return best, reason

    def by_bound(
        self,
        start_of: Callable[[Candidate], Start],
        heteroskedastic: Start | None = None,
        plain: Sequence[Start] = (),
    ) -> Selection:
        """Choose among candidates, kernels of outputs, and noise, by the bound.

        :param start_of: Where a candidate starts.
        """
        given, depth = self.choice.candidates, self.choice.depth
        first, *others = given or [Candidate(depth=each) for each in self.choice.depths]
        start = start_of(first)
        best = self.trained(start, first)
        if best is None:
            raise CholeskyError("The model could not be trained: its bound is not finite.")
        reason = f"Depth {depth} was asked for."
        if depth == "auto":
            reason = "No other model that was tried has a higher bound."
        if plain and first.depth == 1 and may_have_own_kernels(self.trainer):
            before, best = best, self._with_own_kernels(plain, start, best)
            if best is not before:
                reason = "A kernel for each output has a higher bound than one for all."
        if heteroskedastic is not None and first.depth == 1:
            before, best = best, self._compare_bounds(best, heteroskedastic)
            if best is not before:
                reason = _HETEROSKEDASTIC
        for candidate in others:
            other = self.trained(start_of(candidate), candidate, best)
            if other is not None and other.trial.elbo > best.trial.elbo:
                depths = (
                    f"Depth {candidate.depth} has a higher bound than depth {best.trial.depth}."
                )
                best, reason = other, depths
            elif given is None:
                break
        return self.selection(best, reason)

    def _compare_bounds(self, best: Found, heteroskedastic: Start) -> Found:
        """The better one of a model and a single layer with heteroskedastic noise."""
        if not is_recorded_finely(self.trainer.Y, self.trainer.steps):
            return best
        other = self.trained(heteroskedastic, SINGLE, best)
        if other is None or not other.trial.elbo > best.trial.elbo:
            return best
        scores, of_best = other.scores, best.scores
        if scores is None or of_best is None:
            return other
        gain = float(np.mean(scores.log_density - of_best.log_density))
        is_kept = scores.is_sane and gain > 0.0 and no_worse(scores.crps, of_best.crps)
        return other if is_kept else best

    def trained(
        self, start: Start, candidate: Candidate, best: Found | None = None
    ) -> Found | None:
        """Train a model, to the end if after a first stage it may be better than the best."""
        began, trainer, depth = time.perf_counter(), self.trainer, candidate.depth
        if depth > 2 and best is not None and self.choice.candidates is None:
            model = trainer.deepened(start, candidate, best.model)
        else:
            model = trainer.build(start, candidate)
        output = model.output_layer
        if depth == 1 and isinstance(output, RegressionGPLayer) and trainer.Y.shape[1] == 1:
            history = trainer.fit_single_layer(model, start)
            return self._found(model, history, start, began, candidate)
        steps = self._steps
        if depth == 1 and name_of_likelihood(start.likelihood) != "heteroskedastic":
            steps = max(1, steps // 2)
        if best is None:
            history = trainer.take_steps(model, steps)
            return self._found(model, history, start, began, candidate)
        try:
            first = max(1, round(_FIRST_STAGE * steps))
            history = trainer.take_steps(model, first)
            bound = trainer.estimate_bound(model)
            reach = _NATS_IN_REACH * len(trainer.X)
            if bound > best.trial.elbo - reach and steps > first:
                more = trainer.take_steps(model, steps - first, annealing=0.0, seed=1)
                history = history.followed_by(more)
        except (CholeskyError, NonFiniteBoundError):
            return None
        return self._found(model, history, start, began, candidate)

    @property
    def _steps(self) -> int:
        """Of any model but a deep regression."""
        if self.choice.num_steps is not None:
            return self.choice.num_steps
        are_many = self.choice.batch_size is not None and self.choice.effort == "default"
        of_numbers = not isinstance(self.choice.likelihood, Likelihood)
        return _STEPS_OF_BATCHES if are_many and of_numbers else _STEPS_OF_OTHERS

    def _found(
        self,
        model: DeepWishartProcess,
        history: TrainingHistory,
        start: Start,
        began: float,
        candidate: Candidate = SINGLE,
    ) -> Found:
        scores, trainer = None, self.trainer
        distribution = None
        if self._has_leave_one_out and isinstance(model.output_layer, RegressionGPLayer):
            distribution = leave_one_out(model)
        elif self._has_leave_one_out and isinstance(model.likelihood, HeteroskedasticGaussian):
            distribution = leave_one_out_of_heteroskedastic(model, trainer.X, trainer.Y)
        if distribution is not None:
            scores = RowScores.of(distribution, trainer.Y, trainer.steps, margin=2.0)
        seconds = time.perf_counter() - began
        return self.kept(model, history, start, scores, seconds, candidate)

    def _found_deep(self, training: Training) -> Found:
        """What came of it, judged by draws that are weighted as if they had not seen a row.

        Rows for which weights cannot be relied on keep their scores without: at a jump a few draws
        would decide.
        """
        Y, steps = self.trainer.Y, self.trainer.steps
        try:
            drawn = leave_one_out(training.model)
            weighted, k_hat = without_own_row(drawn, Y)
        except (ValueError, np.linalg.LinAlgError):
            scores = RowScores.none(len(Y))
        else:
            flat, smooth = (RowScores.of(each, Y, steps, margin=2.0) for each in (drawn, weighted))
            scores = flat.where(k_hat > MOST_K, smooth)._replace(k_hat=k_hat)
        start, seconds = training.start, training.seconds
        return self.kept(
            training.model, training.history, start, scores, seconds, training.candidate
        )

    def kept(
        self,
        model: DeepWishartProcess,
        history: TrainingHistory,
        start: Start,
        scores: RowScores | None,
        seconds: float,
        candidate: Candidate,
        trainer: Trainer | None = None,
    ) -> Found:
        """Record a model.

        :param trainer: Of its rows; None for the own ones.
        """
        trainer = trainer or self.trainer
        width = candidate.width or self.choice.width or trainer.X.shape[1]
        trial = Trial(
            candidate.depth,
            start.name,
            num_lengthscales(start.kernel) > 1,
            name_of_likelihood(model.likelihood),
            width if model.hidden_layers else None,
            len(trainer.X),
            trainer.estimate_bound(model),
            None if scores is None else scores.mean,
            seconds,
        )
        self.trials.append(trial)
        return Found(model, history, trial, scores, start, candidate)

    def _record_start(self, start: Start, num_rows: int, began: float) -> None:
        self.trials.append(
            Trial(
                1,
                start.name,
                num_lengthscales(start.kernel) > 1,
                name_of_likelihood(start.likelihood),
                None,
                num_rows,
                start.elbo,
                None if start.scores is None else start.scores.mean,
                time.perf_counter() - began,
            )
        )

    def selection(self, best: Found, reason: str) -> Selection:
        """What comes of it."""
        self.best = best
        return Selection(best.model, best.history, best.trial, tuple(self.trials), reason)


_HETEROSKEDASTIC = "Heteroskedastic noise has a higher bound than any other single layer."
_SINGLE_AHEAD = (
    "A single layer predicts each row from all others better than any deep candidate did after its "
    "first steps."
)
