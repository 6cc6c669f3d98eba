"""The search for a model: single layers, then depth, and what each of them predicts."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

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
from gpflow_dwp.selection.candidates import Candidate, Selection
from gpflow_dwp.selection.choice import CANDIDATE_KERNELS, Choice, Effort, is_auto
from gpflow_dwp.selection.depth import Trial, deep_trials, halve
from gpflow_dwp.selection.found import Found, compared
from gpflow_dwp.selection.kernel_posterior import draw_kernel_of
from gpflow_dwp.selection.leave_one_out import leave_one_out, leave_one_out_of_heteroskedastic
from gpflow_dwp.selection.observations import is_recorded_finely
from gpflow_dwp.selection.outputs import criterion, may_have_own_kernels, model_of_outputs
from gpflow_dwp.selection.scores import RowScores, is_better, no_worse, varies
from gpflow_dwp.selection.single_layers import SingleLayers
from gpflow_dwp.selection.starts import Start, num_lengthscales
from gpflow_dwp.selection.trainer import Trainer, deepened
from gpflow_dwp.training import TrainingHistory

__all__ = ["Search"]

# Gradient steps: of a deep regression, by effort; of one with more rows than these, and less above
# 1.7 times as many; and of any other model, of numbers with minibatches.
_STEPS: dict[Effort, int] = {"quick": 3_000, "default": 3_000, "thorough": 8_000}
_STEPS_OF_MANY, _MANY_ROWS = 2_500, 500
_STEPS_OF_OTHERS, _STEPS_OF_BATCHES = 1_000, 600
_DEEPEST: dict[Effort, int] = {"quick": 1, "default": 2, "thorough": 3}
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
    candidates: list[Candidate] = dataclasses.field(default_factory=list)
    plain: list[Start] = dataclasses.field(init=False)
    start: Start = dataclasses.field(init=False)
    single: Found | None = dataclasses.field(init=False)
    best: Found = dataclasses.field(init=False)

    # Beside busy processes several threads of OpenBLAS would spin until each has had its turn.
    @threadpool_limits.wrap(limits=1, user_api="blas")
    def of_numbers(self) -> Selection:
        """Choose among models of numbers."""
        trainer, choice = self.trainer, self.choice
        depth, likelihood = choice.depth, str(choice.likelihood)
        X, Y, weights = trainer.X, trainer.Y, trainer.weights_of_kernels
        is_whole = ~np.isnan(Y).any(axis=1)
        if is_whole.sum() >= min(len(X), _FEWEST_WHOLE_ROWS):
            X, Y = X[is_whole], Y[is_whole]
            weights = None if weights is None else weights[is_whole]
        else:
            Y = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
        singles = self.single_layers(X, Y, weights)
        kernels: tuple[str, ...] = CANDIDATE_KERNELS
        if likelihood == "noise_free" and X.shape[1] > 1:
            kernels += ("SeparableMatern52",)
        plain = singles.plain(kernels if is_auto(choice.kernel) else [choice.kernel])
        heteroskedastic = trainer.heteroskedastic(plain[0])
        if likelihood == "heteroskedastic":
            return self.by_bound(heteroskedastic)
        if is_auto(choice.kernel):
            plain = singles.with_sums(plain)
        start = (
            singles.best_likelihood(plain)
            if likelihood == "auto"
            else singles.with_likelihood(plain[0], likelihood)
        )
        self.plain, self.start = plain, start
        may_vary = likelihood == "auto" and choice.output != "regression" and is_whole.all()
        if not self._has_leave_one_out:
            return self.by_bound(start, heteroskedastic if may_vary else None, plain)
        deepest = _DEEPEST[choice.effort] if depth == "auto" else int(depth)
        best = single = self._single(start) if depth in (1, "auto") else None
        reason = "A single layer was asked for." if depth == 1 else "Only single layers were tried."
        if single is not None and may_have_own_kernels(self.trainer):
            best = self._with_own_kernels(plain, start, single)
            if best is not single:
                reason = compared("A kernel for each output", "better than", best, single)
                single = best
        self.single = single
        if deepest > 1:
            starts = plain if likelihood in ("auto", "gaussian", "noise_free") else [start]
            best, reason = self._deepen(single, starts)
        if best is None:
            raise ValueError(f"depth must be 1 or more, got {depth!r}.")
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
        gain = other.candidate.elbo - best.candidate.elbo
        if not gain > criterion(model) - criterion(best.model):
            return best
        have_scores = other.scores is not None and best.scores is not None
        return best if have_scores and not is_better(other.row_scores, best.row_scores) else other

    def _single(self, start: Start) -> Found:
        """Fit a single layer to all rows."""
        began = time.perf_counter()
        model = self.trainer.build(start, 1)
        if self.trainer.Y.shape[1] == 1 or is_noise_free(start.likelihood):
            history = self.trainer.fit_single_layer(model, start)
        else:  # each output has a noise of its own
            history = self.trainer.take_steps(model, self._steps // 2)
        return self._found(model, history, start, began)

    def _deepen(self, single: Found | None, plain: list[Start]) -> tuple[Found, str]:
        """Train deep candidates, and compare the last of them with a single layer."""
        scores = None if single is None else single.scores
        names = None if len({start.name for start in plain}) > 1 else [plain[0].name]
        depth = self.choice.depth
        first = 2 if depth == "auto" else int(depth)
        effort, num_data = self.choice.effort, len(self.trainer.X)
        steps = self.choice.num_steps or _STEPS[effort]
        if self.choice.num_steps is None and effort == "default" and num_data > _MANY_ROWS:
            steps = round(_STEPS_OF_MANY * min(1.0, 1.7 * _MANY_ROWS / num_data))
        is_asked_for = single is None and names is not None
        trials = deep_trials(self.trainer, plain, first, names, is_asked_for=is_asked_for)
        of_plain = plain[0].scores
        plain_density = np.inf if of_plain is None else of_plain.mean.log_density
        trial = halve(self.trainer, trials, scores, steps, plain_density)
        for other in trials:
            if other is not trial and other.histories:
                self._found_trial(other)
        if trial is None:
            if single is None:
                raise CholeskyError("No deep model could be trained: none had a finite bound.")
            return single, _SINGLE_AHEAD
        deep = self._found_trial(trial)
        if single is None or scores is None:
            return deep, f"Depth {depth} was asked for."
        least = len(self.trainer.X) * (plain[0].elbo / plain[0].num_data - _NATS_OF_FIT)
        surely = is_noise_free(plain[0].likelihood)
        is_ahead = deep.row_scores.mean.log_density > scores.mean.log_density
        is_clear = is_ahead and is_better(trial.scores, scores, surely=surely)
        if deep.candidate.elbo < least or not is_clear:
            how = "not clearly better than" if is_ahead else "no better than"
            return single, compared("Depth 2", how, deep, single)
        best, reason = deep, compared("Depth 2", "better than", deep, single)
        for deeper in range(3, _DEEPEST[self.choice.effort] + 1):
            last = halve(
                self.trainer,
                [
                    dataclasses.replace(
                        trial,
                        depth=deeper,
                        model=deepened(self.trainer, trial.start, best.model),
                        scores=RowScores.none(len(self.trainer.X)),
                        histories=[],
                        seconds=0.0,
                    )
                ],
                trial.scores,
                steps,
            )
            if last is None:
                break
            found = self._found_trial(last)
            is_ahead = found.row_scores.mean.log_density > best.row_scores.mean.log_density
            if not (is_ahead and is_better(last.scores, trial.scores, surely=surely)):
                break
            reason = compared(f"Depth {deeper}", "better than", found, best)
            best, trial = found, last
        return best, reason

    def by_bound(
        self,
        start: Start,
        heteroskedastic: Start | None = None,
        plain: Sequence[Start] = (),
    ) -> Selection:
        """Choose among depths, kernels of outputs, and noise, by the bound."""
        depth = self.choice.depth
        first = 1 if depth == "auto" else int(depth)
        best = self.trained(start, first)
        if best is None:
            raise CholeskyError("The model could not be trained: its bound is not finite.")
        reason = f"Depth {depth} was asked for."
        if depth == "auto":
            reason = "No other model that was tried has a higher bound."
        if plain and first == 1 and may_have_own_kernels(self.trainer):
            before, best = best, self._with_own_kernels(plain, start, best)
            if best is not before:
                reason = "A kernel for each output has a higher bound than one for all."
        if heteroskedastic is not None and first == 1:
            before, best = best, self._compare_bounds(best, heteroskedastic)
            if best is not before:
                reason = _HETEROSKEDASTIC
        if depth == "auto":
            for deeper in range(2, _DEEPEST[self.choice.effort] + 1):
                other = self.trained(start, deeper, best)
                if other is None or not other.candidate.elbo > best.candidate.elbo:
                    break
                best, reason = other, f"Depth {deeper} has a higher bound than depth {deeper - 1}."
        return self.selection(best, reason)

    def _compare_bounds(self, best: Found, heteroskedastic: Start) -> Found:
        """The better one of a model and a single layer with heteroskedastic noise."""
        if not is_recorded_finely(self.trainer.Y, self.trainer.steps):
            return best
        other = self.trained(heteroskedastic, 1, best)
        if other is None or not other.candidate.elbo > best.candidate.elbo:
            return best
        scores, of_best = other.scores, best.scores
        if scores is None or of_best is None:
            return other
        gain = float(np.mean(scores.log_density - of_best.log_density))
        is_kept = scores.is_sane and gain > 0.0 and no_worse(scores.crps, of_best.crps)
        return other if is_kept else best

    def trained(self, start: Start, depth: int, best: Found | None = None) -> Found | None:
        """Train a model, to the end if after a first stage it may be better than the best."""
        began, trainer = time.perf_counter(), self.trainer
        if depth > 2 and best is not None:
            model = deepened(trainer, start, best.model)
        else:
            model = trainer.build(start, depth)
        output = model.output_layer
        if depth == 1 and isinstance(output, RegressionGPLayer) and trainer.Y.shape[1] == 1:
            return self._found(model, trainer.fit_single_layer(model, start), start, began)
        steps = self._steps
        if depth == 1 and name_of_likelihood(start.likelihood) != "heteroskedastic":
            steps = max(1, steps // 2)
        if best is None:
            return self._found(model, trainer.take_steps(model, steps), start, began)
        try:
            first = max(1, round(_FIRST_STAGE * steps))
            history = trainer.take_steps(model, first)
            bound = trainer.estimate_bound(model)
            reach = _NATS_IN_REACH * len(trainer.X)
            if bound > best.candidate.elbo - reach and steps > first:
                more = trainer.take_steps(model, steps - first, annealing=0.0, seed=1)
                history = history.followed_by(more)
        except (CholeskyError, NonFiniteBoundError):
            return None
        return self._found(model, history, start, began)

    @property
    def _steps(self) -> int:
        """Of any model but a deep regression."""
        if self.choice.num_steps is not None:
            return self.choice.num_steps
        are_many = self.choice.batch_size is not None and self.choice.effort == "default"
        of_numbers = not isinstance(self.choice.likelihood, Likelihood)
        return _STEPS_OF_BATCHES if are_many and of_numbers else _STEPS_OF_OTHERS

    def _found(
        self, model: DeepWishartProcess, history: TrainingHistory, start: Start, began: float
    ) -> Found:
        scores, trainer = None, self.trainer
        distribution = None
        if self._has_leave_one_out and isinstance(model.output_layer, RegressionGPLayer):
            distribution = leave_one_out(model)
        elif self._has_leave_one_out and isinstance(model.likelihood, HeteroskedasticGaussian):
            distribution = leave_one_out_of_heteroskedastic(model, trainer.X, trainer.Y)
        if distribution is not None:
            scores = RowScores.of(distribution, trainer.Y, trainer.steps, margin=2.0)
        return self.kept(model, history, start, scores, time.perf_counter() - began)

    def _found_trial(self, trial: Trial) -> Found:
        """What came of it, judged by draws that are weighted as if they had not seen a row.

        Rows for which weights cannot be relied on keep their scores without: at a jump a few draws
        would decide.
        """
        Y, steps = self.trainer.Y, self.trainer.steps
        try:
            drawn = leave_one_out(trial.model)
            weighted, k_hat = without_own_row(drawn, Y)
        except (ValueError, np.linalg.LinAlgError):
            scores = RowScores.none(len(Y))
        else:
            flat, smooth = (RowScores.of(each, Y, steps, margin=2.0) for each in (drawn, weighted))
            scores = flat.where(k_hat > MOST_K, smooth)._replace(k_hat=k_hat)
        return self.kept(trial.model, trial.history, trial.start, scores, trial.seconds)

    def kept(
        self,
        model: DeepWishartProcess,
        history: TrainingHistory,
        start: Start,
        scores: RowScores | None,
        seconds: float,
        trainer: Trainer | None = None,
    ) -> Found:
        """Record a model.

        :param trainer: Of its rows; None for the own ones.
        """
        trainer = trainer or self.trainer
        hidden = model.hidden_layers
        candidate = Candidate(
            len(model.layers),
            start.name,
            num_lengthscales(start.kernel) > 1,
            name_of_likelihood(model.likelihood),
            hidden[0].df if hidden else None,
            len(trainer.X),
            trainer.estimate_bound(model),
            None if scores is None else scores.mean,
            seconds,
        )
        self.candidates.append(candidate)
        return Found(model, history, candidate, scores, start)

    def _record_start(self, start: Start, num_rows: int, began: float) -> None:
        self.candidates.append(
            Candidate(
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
        return Selection(best.model, best.history, best.candidate, tuple(self.candidates), reason)


_HETEROSKEDASTIC = "Heteroskedastic noise has a higher bound than any other single layer."
_SINGLE_AHEAD = (
    "A single layer predicts each row from all others better than any deep candidate did after its "
    "first steps."
)
