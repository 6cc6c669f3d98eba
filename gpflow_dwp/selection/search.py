"""The search for a model: single layers, then depth, and what each of them predicts."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from gpflow.likelihoods import Likelihood

from gpflow_dwp.exceptions import CholeskyError, NonFiniteBoundError
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods.named import is_noise_free, name_of_likelihood
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.calibration import SCALED, scale_deviations
from gpflow_dwp.selection.candidates import SINGLE, Candidate, Selection
from gpflow_dwp.selection.choice import CANDIDATE_KERNELS, Choice, is_auto
from gpflow_dwp.selection.comparison import Comparison, compare
from gpflow_dwp.selection.depth import Training, begin_deep, halve
from gpflow_dwp.selection.found import Found, Trials
from gpflow_dwp.selection.kernel_draws import draw_kernel_of
from gpflow_dwp.selection.labels import VARIANCE, sum_of_numbers
from gpflow_dwp.selection.leave_one_out import nats_of_function
from gpflow_dwp.selection.levels import LEVELS
from gpflow_dwp.selection.observations import is_recorded_finely
from gpflow_dwp.selection.outputs import criterion, model_of_outputs
from gpflow_dwp.selection.scores import crps_without_inputs, is_better, no_worse, varies
from gpflow_dwp.selection.single_layers import SingleLayers
from gpflow_dwp.selection.starts import Start, initial_kernel

__all__ = ["Search"]


@dataclasses.dataclass
class Search(Trials):
    """The search for a model of a trainer's rows.

    :param are_all: Whether the rows are all there are, so that what is chosen is finished.
    :ivar plain: Single layers with Gaussian noise or none, best first.
    :ivar start: The best one of any likelihood.
    :ivar single: The same, fitted to all rows; None where depth is asked for, or bounds choose.
    """

    are_all: bool = True
    plain: list[Start] = dataclasses.field(init=False)
    start: Start = dataclasses.field(init=False)
    single: Found | None = dataclasses.field(default=None, init=False)

    def of_numbers(self) -> Selection:
        """Choose among models of numbers."""
        trainer, choice = self.trainer, self.choice
        likelihood, given = str(choice.likelihood), choice.candidates
        X, Y, weights = trainer.X, trainer.Y, trainer.weights_of_kernels
        is_whole = ~np.isnan(Y).any(axis=1)
        if is_whole.sum() >= min(len(X), policy.FEWEST_ROWS):
            X, Y = X[is_whole], Y[is_whole]
            weights = None if weights is None else weights[is_whole]
        else:
            Y = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
        singles = SingleLayers(X, Y, weights, trainer.steps, choice, trainer.seed, self.record)
        names, are_free = self._single_kernels(singles)
        plain = singles.plain(names)
        heteroskedastic = trainer.heteroskedastic(plain[0])
        if likelihood == "heteroskedastic":
            return self.by_bound(lambda _: heteroskedastic)
        if are_free:
            plain = singles.with_sums(plain)
        first = [each.kernels for each in given or () if each.depth == 1]
        ones = [each for each in plain if not all(first) or (each.name,) in first] or plain
        if are_free and self.has_leave_one_out:
            ones = singles.with_noise_alone(ones)
        is_single_of_one = 1 in choice.depths and trainer.Y.shape[1] == 1
        if likelihood == "auto":
            start = singles.best_likelihood(ones)
        elif likelihood == "noise_free" and choice.may_warp and is_single_of_one:
            start = singles.best_warp(ones)
        else:
            start = singles.with_likelihood(ones[0], likelihood)
        self.plain, self.start = plain, start
        may_vary = likelihood == "auto" and choice.output != "regression" and is_whole.all()
        if not self.has_leave_one_out:
            by_name = {each.name: each for each in reversed(plain)}
            return self.by_bound(
                lambda each: by_name[each.kernels[0]] if each.kernels else start,
                heteroskedastic if may_vary else None,
            )
        best, reason = self._best_single(plain, start) if 1 in choice.depths else (None, "")
        self.single = single = best
        may_deepen = choice.depths[-1] > 1
        if best is not None and may_deepen and self._is_near_enough(best):
            reason = _NEAR_ENOUGH
        elif best is None or may_deepen:
            if likelihood not in ("auto", "gaussian", "noise_free"):
                plain = [singles.with_likelihood(each, likelihood) for each in plain if given]
                plain = plain or [start]
            best, reason = self._deepen(single, plain)
        if best is single and may_vary and varies(single.row_scores.squares, trainer.X):
            best = self._compare_bounds(best, heteroskedastic)
            if best is not single:
                reason = _HETEROSKEDASTIC
        if self.are_all and choice.most_iterations >= policy.FEWEST_ITERATIONS:
            finish = self._finished_deep if best.model.hidden_layers else self._finished_single
            best = finish(best)
        return self.selection(best, reason)

    def _finished_single(self, best: Found) -> Found:
        """With draws of its kernel, and without noise with deviations that are scaled."""
        began, trainer, model = time.perf_counter(), self.trainer, best.model
        weights = trainer.weights_of_kernels
        is_drawn, of_draws = draw_kernel_of(model, weights, trainer.steps, trainer.seed)
        of_scale = SCALED if scale_deviations(model) != 1.0 else ""
        note = " ".join(filter(None, [of_draws, of_scale]))
        if is_drawn or of_scale:
            return self.found(model, best.history, best.start, began, note=note)
        return dataclasses.replace(best, note=note)

    def _finished_deep(self, best: Found) -> Found:
        """Without noise, with predictions from nearest rows as well."""
        neighbours = policy.NEIGHBOURS_OF_FIT
        if not is_noise_free(best.start.likelihood) or len(self.trainer.X) <= policy.FEW_ROWS:
            return best
        best = self.conditioned(best, neighbours)
        note = f"Predictions are from the {neighbours} nearest rows as well. {best.note}".strip()
        return dataclasses.replace(best, note=note)

    def of_others(self, likelihood: Likelihood) -> Selection:
        """Choose among models of labels, counts and other observations, by their bounds."""
        choice, num_inputs = self.choice, self.trainer.X.shape[1]
        are_free = is_auto(choice.kernel) and choice.candidates is None

        def start_of(candidate: Candidate) -> Start:
            name = CANDIDATE_KERNELS[0] if is_auto(choice.kernel) else choice.kernel
            name = candidate.kernels[0] if candidate.kernels else name
            kernel = initial_kernel(name, num_inputs, variance=VARIANCE)
            return Start(name, kernel, likelihood)

        sums = sum_of_numbers(self.trainer, likelihood) if are_free else None
        return self.by_bound(start_of, sums=sums)

    @property
    def choice(self) -> Choice:
        """What is asked for."""
        return self.trainer.choice

    def _single_kernels(self, singles: SingleLayers) -> tuple[list[str], bool]:
        """Names of kernels that single layers are fitted with, and whether others are free, too."""
        choice, names = self.choice, list(CANDIDATE_KERNELS)
        if choice.likelihood == "noise_free" and self.trainer.X.shape[1] > 1:
            names.append("SeparableMatern52")
        if any(singles.categories):
            names.append(LEVELS)
        if not is_auto(choice.kernel):
            return [choice.kernel], False
        first = [each.kernels[:1] for each in choice.candidates or [Candidate()]]
        are_free = not all(first)
        given = [name for each in first for name in each]
        return [*dict.fromkeys(given + names * are_free)], are_free

    def _best_single(self, plain: Sequence[Start], shared: Start) -> tuple[Found, str | Comparison]:
        """Fit a single layer to all rows, with one kernel or one for each output."""
        began, trainer = time.perf_counter(), self.trainer
        if trainer.has_missing:
            return self._own_kernels(plain, shared), _OWN_KERNELS
        model = trainer.build(shared, SINGLE)
        single = self.found(model, trainer.fit_single_layer(model, shared), shared, began)
        if trainer.may_have_own_kernels:
            own = self._own_kernels(plain, shared)
            scores = own.row_scores, single.row_scores
            # Scores are not enough: more parameters are fitted to the rows that they are of.
            least = criterion(own.model) - criterion(single.model)
            if own.trial.elbo - single.trial.elbo > least and is_better(*scores):
                return own, compare("A kernel for each output", "one for all", *scores)
        return single, _ASKED_FOR if self.choice.depth == 1 else _SINGLE_ALONE

    def _own_kernels(self, plain: Sequence[Start], shared: Start) -> Found:
        """A single layer with a kernel for each output."""
        began = time.perf_counter()
        model, history, start = model_of_outputs(self.trainer, plain, shared)
        return self.found(model, history, start, began)

    def _is_near_enough(self, single: Found) -> bool:
        """Whether a single layer leaves nothing that depth could gain, beside noise."""
        scores, trainer = single.scores, self.trainer
        if self.choice.candidates is not None or scores is None or not scores.is_sane:
            return False
        if scores.mean.crps < policy.LEFT_TO_GAIN * crps_without_inputs(trainer.Y):
            return True
        layer, likelihood = single.model.output_layer, single.model.likelihood
        is_other = trainer.Y.shape[1] > 1 or not isinstance(layer, RegressionGPLayer)
        if is_other or varies(scores.squares, trainer.X):
            return False
        # What a known function would gain, in the mean; over rows its variance is twice as much.
        nats = nats_of_function(layer, likelihood, trainer.weights_of_kernels)
        return nats < min(4.0 * policy.LEVEL_NATS, 2.0 * policy.SURE_ERRORS**2 / len(trainer.X))

    def _deepen(self, single: Found | None, plain: list[Start]) -> tuple[Found, str | Comparison]:
        """Train deep candidates, and compare the last of them with a single layer."""
        scores = None if single is None else single.scores
        choice, trainer, num_data = self.choice, self.trainer, len(self.trainer.X)
        if scores is not None and num_data <= policy.FEW_ROWS:
            # They flatter the more, the freer a kernel is: depth has to beat all of them.
            known = (each.scores for each in plain if each.scores is not None)
            known = (each for each in known if each.is_sane and len(each.crps) == num_data)
            scores = max(scores, *known, key=lambda each: each.mean.log_density)
        steps = choice.num_steps or policy.STEPS[choice.effort]
        share = min(1.0, policy.ROWS_FOR_CHOICE / num_data)
        if choice.num_steps is None and choice.effort == "default":
            steps = round(steps * math.sqrt(share))
        trainings = begin_deep(trainer, plain, is_asked_for=single is None)
        training = halve(trainer, trainings, scores, steps)
        for each in trainings:
            if each is not training and each.histories:
                self.found_deep(each)
        if training is None:
            if single is None:
                raise CholeskyError("No deep model could be trained: none had a finite bound.")
            return single, _SINGLE_AHEAD
        deep = self.found_deep(training)
        depth = deep.trial.depth
        if single is None or scores is None:
            if choice.candidates is None:
                return deep, f"Depth {depth} was asked for."
            return deep, "No other candidate predicts each row from all others better."
        seen = float(np.mean(~np.isnan(trainer.Y)))
        least = num_data * seen * (plain[0].elbo / plain[0].num_data - policy.NATS_OF_FIT)
        has_fit = deep.trial.elbo >= least
        than = "depth 1" if scores is single.scores else "another single layer"
        found = compare(f"Depth {depth}", than, deep.row_scores, scores, may_be_kept=has_fit)
        if not found.is_kept:
            return single, found
        for deeper in choice.depths[2:] if choice.candidates is None else ():
            candidate = dataclasses.replace(training.candidate, depth=deeper)
            model = trainer.deepened(training.start, candidate, deep.model)
            last = Training(candidate, training.start, model)
            if halve(trainer, [last], training.scores, steps) is None:
                break
            other = self.found_deep(last)
            further = compare(
                f"Depth {deeper}", f"depth {deeper - 1}", other.row_scores, deep.row_scores
            )
            if not further.is_kept:
                break
            deep, found, training = other, further, last
        return deep, found

    def by_bound(
        self,
        start_of: Callable[[Candidate], Start],
        heteroskedastic: Start | None = None,
        sums: Start | None = None,
    ) -> Selection:
        """Choose among candidates, and noise, by the bound.

        :param start_of: Where a candidate starts.
        :param heteroskedastic: Another single layer to try, or None.
        :param sums: Where the first candidate may start as well, and then all others, or None.
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
        if heteroskedastic is not None and first.depth == 1:
            before, best = best, self._compare_bounds(best, heteroskedastic)
            if best is not before:
                reason = _HETEROSKEDASTIC
        if sums is not None:
            other = self.trained(sums.apart(), first, best)
            if other is None or not other.trial.elbo > best.trial.elbo:
                sums = None
            else:
                best = other
        for candidate in others:
            start = start_of(candidate) if sums is None else sums.apart()
            other = self.trained(start, candidate, best)
            if other is not None and other.trial.elbo > best.trial.elbo:
                reason = (
                    f"Depth {candidate.depth} has a higher bound than depth {best.trial.depth}."
                )
                best = other
            elif given is None:
                break
        note = "" if sums is None else _SUM
        return self.selection(dataclasses.replace(best, note=note), reason)

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
        began, trainer, choice = time.perf_counter(), self.trainer, self.choice
        depth, of_numbers = candidate.depth, not isinstance(choice.likelihood, Likelihood)
        if depth > 2 and best is not None and choice.candidates is None:
            model = trainer.deepened(start, candidate, best.model)
        else:
            model = trainer.build(start, candidate)
        are_many = choice.batch_size is not None and choice.effort == "default" and of_numbers
        steps = policy.STEPS_OF_BATCHES if are_many else policy.STEPS_OF_OTHERS
        steps = choice.num_steps or steps
        if depth == 1 and name_of_likelihood(start.likelihood) != "heteroskedastic":
            steps = max(1, steps // 2)
        if depth == 1 and isinstance(model.output_layer, RegressionGPLayer):
            history = trainer.fit_single_layer(model, start)
        elif best is None:
            history = trainer.take_steps(model, steps)
        else:
            try:
                first = max(1, round(sum(share for share, _ in policy.STAGES[:-1]) * steps))
                history = trainer.take_steps(model, first)
                bound = trainer.estimate_bound(model)
                reach = policy.LEVEL_NATS * len(trainer.X)
                if bound > best.trial.elbo - reach and steps > first:
                    more = trainer.take_steps(model, steps - first, annealing=0.0, seed=1)
                    history = history.followed_by(more)
            except (CholeskyError, NonFiniteBoundError):
                return None
        return self.found(model, history, start, began, candidate)


_ASKED_FOR, _SINGLE_ALONE = "A single layer was asked for.", "Only single layers were tried."
_HETEROSKEDASTIC = "Heteroskedastic noise has a higher bound than any other single layer."
_SUM = "Its first kernel is a sum of functions of single inputs, with which the bound is higher."
_OWN_KERNELS = "Each output has a kernel of its own, fitted to the rows in which it was observed."
_NEAR_ENOUGH = (
    "A single layer leaves less than a hundredth of the CRPS that there is without inputs, or next "
    "to nothing beside noise: depth was not tried."
)
_SINGLE_AHEAD = (
    "No deep candidate gained enough in its first steps to become better than a single layer."
)
