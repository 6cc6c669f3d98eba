"""From data to the model that predicts them best."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, get_args

import numpy as np
from gpflow.base import RegressionData
from gpflow.likelihoods import Gaussian, Likelihood

from gpflow_dwp.base import TrainingData
from gpflow_dwp.data.table import as_weighted, check_arrays, check_weights
from gpflow_dwp.exceptions import CholeskyError, NonFiniteBoundError
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.layers.wishart_posterior import PosteriorFamily
from gpflow_dwp.likelihoods import HeteroskedasticGaussian, WarpedGaussian
from gpflow_dwp.likelihoods.named import LikelihoodName, name_of_likelihood
from gpflow_dwp.models import KERNELS, DeepWishartProcess, build_deep_wishart_process
from gpflow_dwp.models.assembly import InducingChoice, OutputPosterior
from gpflow_dwp.models.data_checks import check_data
from gpflow_dwp.objectives import Estimator
from gpflow_dwp.selection._kernels import initial_kernel
from gpflow_dwp.selection._starts import Start, num_lengthscales
from gpflow_dwp.selection.candidates import (
    CANDIDATE_KERNELS,
    Auto,
    Candidate,
    Effort,
    Selection,
)
from gpflow_dwp.selection.depth import Trial, deep_trials, halve
from gpflow_dwp.selection.leave_one_out import leave_one_out, leave_one_out_of_heteroskedastic
from gpflow_dwp.selection.observations import recorded_steps
from gpflow_dwp.selection.scores import RowScores, is_better, no_worse
from gpflow_dwp.selection.single_layers import SingleLayers
from gpflow_dwp.selection.trainer import Trainer, deepened, rows_of_batches
from gpflow_dwp.training import EarlyStopping, TrainingHistory
from gpflow_dwp.validation import check_choice, check_instance, check_integers

__all__ = ["select_model"]

# Gradient steps: of a deep regression, by effort, and of any other model.
_STEPS: dict[Effort, int] = {"quick": 3_000, "default": 3_000, "thorough": 8_000}
_STEPS_OF_OTHERS = 1_000
_DEEPEST: dict[Effort, int] = {"quick": 1, "default": 2, "thorough": 3}
# What is left of a model that gradient steps train, after the first stage, has to be so near to the
# best one, in nats a row.
_FIRST_STAGE = 0.4
_NATS_IN_REACH = 0.02
# Up to so many rows depth is tried with the single layer's warp, too, where plain it does not pay.
_ROWS_FOR_WARPED_DEPTH = 250
# A bound that is lower than a plain process's by so many nats a row is of a posterior that has run
# away from the prior, and leave-one-out scores given its draws are too good.
_NATS_OF_FIT = 0.25
# Noise that differs from row to row can be tiny where equal values are: no density can tell then.
_MOST_TIES = 0.1


def select_model(
    data: TrainingData,
    *,
    depth: int | Auto = "auto",
    kernel: str | Auto = "auto",
    likelihood: Likelihood | LikelihoodName | Auto = "auto",
    effort: Effort = "default",
    num_inducing: int | Auto = "auto",
    posterior: PosteriorFamily = "AB",
    whiten: bool = False,
    width: int | None = None,
    output: OutputPosterior | None = None,
    inducing: InducingChoice = "subset",
    latent_dim: int = 0,
    estimator: Estimator = Estimator(),
    num_steps: int | None = None,
    batch_size: int | None = None,
    num_samples: int = 2,
    validation_data: RegressionData | None = None,
    patience: int = 10,
    seed: int = 0,
    progress: bool = True,
) -> Selection:
    """Fit models of several kernels, likelihoods and depths, and keep the one that predicts best.

    Of a table of numbers up to 2,000 rows, single layers come first: exact Gaussian processes that
    L-BFGS fits within seconds. The kernel is the one with the highest evidence, from several
    initialisations, with a lengthscale for each input where they gain more than a nat each over a
    common one. A warp, and Student's noise, are kept if their evidence is higher and they predict
    each row from all others no worse than plain Gaussian noise does, by CRPS in the unit of the
    observations.

    Then depth gets a trial. Deep candidates start plain, without a warp and with Gaussian noise,
    from the fitted single layers: a squared exponential and a Matérn 5/2 kernel, ν the number of
    inputs, and 5 where those are less than 4. They are trained in three stages, and weak ones are
    dropped against each other, by leave-one-out density. The last is kept if it predicts better
    than the best single layer: by the log density of each row given all others, with CRPS not
    against it (:func:`gpflow_dwp.selection.leave_one_out`).

    Observations that repeat are taken to be recorded to a step, the smallest gap between them. All
    densities here are then probabilities of cells, by their width.

    Of more rows, other likelihoods and latent variables models are compared by their bounds.

    :param data: Inputs [N, D], standardised, and observations [N, P], standardised as well where
        they are numbers; and weights [N] if rows are to count more or less than once.
    :param depth: GP layers of the equivalent deep GP; "auto" for 1, or more where that pays.
    :param kernel: A name in :data:`gpflow_dwp.models.KERNELS`, for all layers; "auto" for one of
        :data:`CANDIDATE_KERNELS`, with or without a lengthscale for each input, or the first of
        them for a likelihood that is given.
    :param likelihood: One that is given, or the name of one; "auto" for the one that predicts best:
        see :data:`gpflow_dwp.likelihoods.LikelihoodName`.
    :param effort: "quick" tries single layers only, "default" depth 2 as well, "thorough" takes
        more steps, and tries depth 3 and a warp over a deep model.
    :param num_inducing: Number of inducing points, M, at most; "auto" for all rows up to 1,000 and
        at most 500 above in a single layer; where gradient steps are taken, for 100, and with
        minibatches of numbers for 300 in a single layer and 200 in deeper models.
    :param posterior: Posterior family of every Wishart layer; like the next five, as for
        :func:`build_deep_wishart_process`.
    :param whiten: Whether posteriors are relative to the prior's scale.
    :param width: Degrees of freedom of every Wishart layer, ν; None for the number of inputs, or 5
        where that predicts better.
    :param output: What the output layer's posterior comes from, at all depths.
    :param inducing: Where inducing inputs start: "subset", "kmeans" or a matrix, [M, D].
    :param latent_dim: Number of latent variables of each row, W. Kernel and likelihood are chosen
        without latent variables, and a single layer with some takes gradient steps, too.
    :param estimator: Of the bound in these steps, and of what is compared: with latent variables
        an importance-weighted one, say.
    :param num_steps: Gradient steps of a model that takes such, at most, and half of them in a
        single layer, unless its noise is heteroskedastic; None for 1,000, and in deep regressions
        for 3,000, or 8,000 if ``effort`` is "thorough".
    :param batch_size: Rows of a minibatch in these steps; None for all up to 2,000 rows and for
        1,000 above; of another likelihood, for all up to 500 and for 500 above.
    :param num_samples: Number of draws in each of these steps, S.
    :param validation_data: Held-out rows, X [N, D] and Y [N, P], in the same units. Gradient
        steps end when their log density gets no better, and the best parameters are kept (see
        :class:`EarlyStopping`); it is judged 20 times in a run, once the annealing is over. L-BFGS
        takes no notice. None for all steps.
    :param patience: After how many judgements without a better density a run ends.
    :param seed: For starting values, draws and minibatches.
    :param progress: Whether to show progress bars.
    :raises ValueError: If an argument or the data cannot be used; nothing has been fitted then.
    """
    X, Y, weights = as_weighted(data)
    X, Y = check_arrays(X, Y)
    weights = None if weights is None else check_weights(weights, len(X))
    for name, number in (("depth", depth), ("num_inducing", num_inducing)):
        if number != "auto":
            check_integers(**{name: number})
    if not _is_auto(kernel):
        check_choice(KERNELS, kernel=kernel)
    given = likelihood if isinstance(likelihood, Likelihood) else None
    if given is None:
        check_choice((*get_args(LikelihoodName), "auto"), likelihood=likelihood)
    if isinstance(given, Gaussian):
        raise ValueError("likelihood must be a name where the noise is Gaussian, got an object.")
    check_choice(get_args(Effort), effort=effort)
    for name, count in (("num_steps", num_steps), ("batch_size", batch_size)):
        if count is not None:
            check_integers(**{name: count})
    check_integers(num_samples=num_samples, patience=patience)
    architecture: dict[str, Any] = {
        "posterior": posterior,
        "whiten": whiten,
        "width": width,
        "inducing": inducing,
        "latent_dim": latent_dim,
        "num_samples": num_samples,
    }
    # What cannot be used is refused here, before anything is fitted.
    smallest = build_deep_wishart_process(
        data,
        1 if depth == "auto" else depth,
        num_inducing=1 if num_inducing == "auto" else num_inducing,
        likelihood="gaussian" if likelihood == "auto" else likelihood,
        output=output,
        seed=seed,
        **architecture,
    )
    check_instance(Estimator, estimator=estimator)
    if validation_data is not None:
        _check_validation_data(validation_data, smallest)
    trainer = Trainer(
        X,
        Y,
        weights,
        recorded_steps(Y) if given is None else np.zeros(Y.shape[1]),
        num_inducing,
        output,
        rows_of_batches(len(X), given) if batch_size is None else batch_size,
        progress,
        architecture,
        seed,
        estimator=estimator,
        validation_data=validation_data,
        patience=patience,
    )
    search = _Search(trainer, effort, num_steps)
    if given is not None:
        name = CANDIDATE_KERNELS[0] if kernel == "auto" else kernel
        start = Start(name, initial_kernel(name, X.shape[1], variance=10.0), given)
        return search.by_bound(start, depth)
    kernels = CANDIDATE_KERNELS if kernel == "auto" else (kernel,)
    return search.of_numbers(kernels, str(likelihood), depth)


@dataclasses.dataclass
class _Search:
    """What was tried, and how."""

    trainer: Trainer
    effort: Effort
    num_steps: int | None
    candidates: list[Candidate] = dataclasses.field(default_factory=list)

    def of_numbers(self, kernels: tuple[str, ...], likelihood: str, depth: int | Auto) -> Selection:
        """Choose among models of numbers."""
        trainer = self.trainer
        singles = SingleLayers(
            trainer.X,
            trainer.Y,
            trainer.weights,
            trainer.steps,
            100 if self.num_steps is None else self.num_steps,
            trainer.seed,
            self._record_start,
        )
        plain = singles.plain(kernels)
        heteroskedastic = trainer.heteroskedastic(plain[0])
        if likelihood == "heteroskedastic":
            return self.by_bound(heteroskedastic, depth)
        start = (
            singles.best_likelihood(plain)
            if likelihood == "auto"
            else singles.with_likelihood(plain[0], likelihood)
        )
        may_vary = likelihood == "auto" and trainer.output != "regression"
        if not self._has_leave_one_out:
            return self.by_bound(start, depth, heteroskedastic if may_vary else None)
        deepest = _DEEPEST[self.effort] if depth == "auto" else int(depth)
        best = single = self._single(start) if depth in (1, "auto") else None
        reason = "A single layer was asked for." if depth == 1 else "Only single layers were tried."
        if deepest > 1:
            starts = plain if likelihood in ("auto", "gaussian") else [start]
            best, reason = self._deepen(single, starts, depth)
            is_warped = isinstance(start.likelihood, WarpedGaussian)
            if best is single and is_warped and len(trainer.X) <= _ROWS_FOR_WARPED_DEPTH:
                best, reason = self._deepen(single, [start], depth)
        assert best is not None
        if best is single and may_vary:
            best = self._compare_bounds(best, heteroskedastic)
            if best is not single:
                reason = "Heteroskedastic noise has a higher bound than the best single layer."
        return self._selection(best, reason)

    @property
    def _has_leave_one_out(self) -> bool:
        trainer = self.trainer
        return (
            trainer.batch_size is None
            and not trainer.latent_dim
            and trainer.output != "pseudo_targets"
        )

    def _single(self, start: Start) -> _Found:
        """Fit a single layer to all rows."""
        began = time.perf_counter()
        model = self.trainer.build(start, 1)
        if self.trainer.Y.shape[1] == 1:
            history = self.trainer.fit_single_layer(model, start)
        else:  # each output has a noise of its own
            history = self.trainer.take_steps(model, self._steps // 2)
        return self._found(model, history, start, began)

    def _deepen(
        self, single: _Found | None, plain: list[Start], depth: int | Auto
    ) -> tuple[_Found, str]:
        """Train deep candidates, and compare the last of them with a single layer."""
        scores = None if single is None else single.scores
        names = None if len({start.name for start in plain}) > 1 else [plain[0].name]
        first = 2 if depth == "auto" else int(depth)
        steps = self.num_steps or _STEPS[self.effort]
        is_asked_for = single is None and names is not None
        trials = deep_trials(self.trainer, plain, first, names, is_asked_for=is_asked_for)
        trial = halve(self.trainer, trials, scores, steps)
        for other in trials:
            if other is not trial and other.histories:
                self._found_trial(other)
        if trial is None:
            if single is None:
                raise CholeskyError("No deep model could be trained: none had a finite bound.")
            return single, _SINGLE_FAR_AHEAD
        deep = self._found_trial(trial)
        if single is None or scores is None:
            return deep, f"Depth {depth} was asked for."
        least = len(self.trainer.X) * (plain[0].elbo / plain[0].num_data - _NATS_OF_FIT)
        if deep.candidate.elbo < least or not is_better(trial.scores, scores):
            return single, _compared("Depth 2", "no better than", deep, single)
        best, reason = deep, _compared("Depth 2", "better than", deep, single)
        for deeper in range(3, _DEEPEST[self.effort] + 1):
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
                best.scores,
                steps,
            )
            if last is None:
                break
            found = self._found_trial(last)
            if not is_better(last.scores, trial.scores):
                break
            reason = _compared(f"Depth {deeper}", "better than", found, best)
            best, trial = found, last
        return best, reason

    def by_bound(
        self, start: Start, depth: int | Auto, heteroskedastic: Start | None = None
    ) -> Selection:
        """Choose among depths, and noise, by the bound."""
        first = 1 if depth == "auto" else int(depth)
        best = self._trained(start, first)
        if best is None:
            raise CholeskyError("The model could not be trained: its bound is not finite.")
        reason = f"Depth {depth} was asked for."
        if depth == "auto":
            reason = "No other model that was tried has a higher bound."
            for deeper in range(2, _DEEPEST[self.effort] + 1):
                other = self._trained(start, deeper, best)
                if other is None or not other.candidate.elbo > best.candidate.elbo:
                    break
                best = other
        if heteroskedastic is not None and first == 1:
            best = self._compare_bounds(best, heteroskedastic)
        return self._selection(best, reason)

    def _compare_bounds(self, best: _Found, heteroskedastic: Start) -> _Found:
        """The better one of a model and a single layer with heteroskedastic noise."""
        Y = self.trainer.Y
        ties = 1.0 - min(len(np.unique(column)) for column in Y.T) / len(Y)
        if ties > _MOST_TIES:
            return best
        other = self._trained(heteroskedastic, 1, best)
        if other is None or not other.candidate.elbo > best.candidate.elbo:
            return best
        scores, of_best = other.scores, best.scores
        if scores is None or of_best is None:
            return other
        gain = float(np.mean(scores.log_density - of_best.log_density))
        is_kept = scores.is_sane and gain > 0.0 and no_worse(scores.crps, of_best.crps)
        return other if is_kept else best

    def _trained(self, start: Start, depth: int, best: _Found | None = None) -> _Found | None:
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
                more = trainer.take_steps(model, steps - first, is_first=False, seed=1)
                history = history.followed_by(more)
        except (CholeskyError, NonFiniteBoundError):
            return None
        return self._found(model, history, start, began)

    @property
    def _steps(self) -> int:
        return _STEPS_OF_OTHERS if self.num_steps is None else self.num_steps

    def _found(
        self, model: DeepWishartProcess, history: TrainingHistory, start: Start, began: float
    ) -> _Found:
        scores, trainer = None, self.trainer
        distribution = None
        if self._has_leave_one_out and isinstance(model.output_layer, RegressionGPLayer):
            distribution = leave_one_out(model)
        elif self._has_leave_one_out and isinstance(model.likelihood, HeteroskedasticGaussian):
            distribution = leave_one_out_of_heteroskedastic(model, trainer.X, trainer.Y)
        if distribution is not None:
            scores = RowScores.of(distribution, trainer.Y, trainer.steps, margin=2.0)
        return self._kept(model, history, start, scores, time.perf_counter() - began)

    def _found_trial(self, trial: Trial) -> _Found:
        return self._kept(trial.model, trial.history, trial.start, trial.scores, trial.seconds)

    def _kept(
        self,
        model: DeepWishartProcess,
        history: TrainingHistory,
        start: Start,
        scores: RowScores | None,
        seconds: float,
    ) -> _Found:
        hidden = model.hidden_layers
        candidate = Candidate(
            len(model.layers),
            start.name,
            num_lengthscales(start.kernel) > 1,
            name_of_likelihood(model.likelihood),
            hidden[0].df if hidden else None,
            len(self.trainer.X),
            self.trainer.estimate_bound(model),
            None if scores is None else scores.mean,
            seconds,
        )
        self.candidates.append(candidate)
        return _Found(model, history, candidate, scores)

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

    def _selection(self, best: _Found, reason: str) -> Selection:
        return Selection(best.model, best.history, best.candidate, tuple(self.candidates), reason)


@dataclasses.dataclass(frozen=True)
class _Found:
    """A model that was fitted to all rows."""

    model: DeepWishartProcess
    history: TrainingHistory
    candidate: Candidate
    scores: RowScores | None


_SINGLE_FAR_AHEAD = (
    "A single layer predicts each row from all others far better than any deep candidate did after "
    "its first steps."
)


def _compared(what: str, how: str, deep: _Found, single: _Found) -> str:
    assert deep.scores is not None and single.scores is not None
    (a, b), (c, d) = deep.scores.mean, single.scores.mean
    return (
        f"{what} predicts each row from all others {how} depth {len(single.model.layers)}: log "
        f"density {a:.3f} and {c:.3f}, CRPS {b:.3g} and {d:.3g}, standardised."
    )


def _check_validation_data(data: RegressionData, model: DeepWishartProcess) -> None:
    try:
        EarlyStopping(data)
        check_data(model, *data)
    except ValueError as error:
        raise ValueError(f"validation_data cannot be used: {error}") from error


def _is_auto(choice: Any) -> bool:
    return isinstance(choice, str) and choice == "auto"
