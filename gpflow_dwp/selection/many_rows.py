"""The choice of a model where rows are too many for exact processes."""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np

from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.exceptions import CholeskyError, NonFiniteBoundError
from gpflow_dwp.gaussian_process.student_noise import precisions_of_all
from gpflow_dwp.likelihoods import HeteroskedasticGaussian
from gpflow_dwp.likelihoods.named import is_noise_free
from gpflow_dwp.neighbours import Index
from gpflow_dwp.random import random_order
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.calibration import SCALED, scale_deviations
from gpflow_dwp.selection.candidates import SINGLE, Selection
from gpflow_dwp.selection.comparison import compare
from gpflow_dwp.selection.found import Found, Trials
from gpflow_dwp.selection.leave_one_out import leave_one_out, leave_one_out_of_heteroskedastic
from gpflow_dwp.selection.near_rows import fit_to_near_rows
from gpflow_dwp.selection.outputs import joined, single_layers_of, starts_of_outputs
from gpflow_dwp.selection.scores import RowScores, is_ahead
from gpflow_dwp.selection.search import Search
from gpflow_dwp.selection.single_layers import SingleLayers
from gpflow_dwp.selection.starts import Start
from gpflow_dwp.selection.trainer import Trainer, history_of_fit

__all__ = ["choose_from_many"]

# Inducing points of a single layer, at least, and the product of rows and their square: up to 1,357
# rows all of them.
_LEAST_INDUCING, _WORK = 100, 2.5e9


def choose_from_many(trainer: Trainer) -> Selection:
    """Choose from models of some rows, and condition what is best on all.

    :param trainer: Of all rows, which are numbers; of several outputs some may be missing.
    """
    choice, weights = trainer.choice, trainer.weights
    order = random_order(len(trainer.X), trainer.seed, policy.EXACT_ROWS)
    if weights is not None:
        order = order[weights[order] > 0.0]
    some, rows = order[: policy.EXACT_ROWS], order[-policy.EXACT_ROWS :]
    few = Search(
        dataclasses.replace(
            trainer,
            X=trainer.X[some],
            Y=trainer.Y[some],
            weights=None if weights is None else weights[some],
            choice=dataclasses.replace(choice, batch_size=None),
        ),
        are_all=False,
    )
    of_few = few.of_numbers()
    given = dataclasses.replace(choice, batch_size=None, output="regression")
    of_all = dataclasses.replace(trainer, choice=given)
    many = _Many(of_all, few.trials, few=few, some=some, rows=rows)
    if 1 not in choice.depths:
        return few.selection(many.deep(), *of_few.reasons)
    single = many.single()
    is_heteroskedastic = isinstance(of_few.model.likelihood, HeteroskedasticGaussian)
    if of_few.best.depth == 1 and not is_heteroskedastic:
        told = f"That is of {len(some):,} rows; predictions are from all."
        return few.selection(single, *of_few.reasons, told)
    if is_heteroskedastic:
        other = many.heteroskedastic(trainer)
        names = "Heteroskedastic noise", "another single layer"
    else:
        other = many.deep()
        names = f"Depth {other.trial.depth}", "a single layer"
    found = compare(*names, other.row_scores, single.row_scores, num_rows=len(rows))
    return few.selection(other if found.is_kept else single, found)


@dataclasses.dataclass(kw_only=True)
class _Many(Trials):
    """Models that are conditioned on all rows, of a trainer for regressions.

    :param few: What was found for some of them.
    :param some: Which these are.
    :param rows: Those to leave out.
    """

    few: Search
    some: Index
    rows: Index

    def single(self) -> Found:
        """A single layer, fitted to some rows alone, or to rows given those near them.

        The latter has to be surely ahead: where there is noise, few rows do not tell much of it.
        """
        began, trainer, few = time.perf_counter(), self.trainer, self.few
        near, size = self._near(), trainer.choice.num_inducing
        if size == "auto":
            num_data, num_outputs = trainer.Y.shape
            work = math.sqrt(_WORK / (num_data * num_outputs))
            size = int(np.clip(work, _LEAST_INDUCING, num_data))
        sizes = [(near, size, policy.NEIGHBOURS), (near, 1, 2 * policy.NEIGHBOURS)]
        if few.single is not None:
            sizes.insert(0, (self._fitted_to_few(few.single), size, policy.NEIGHBOURS))
        best = None
        for start, num_inducing, num_neighbours in sizes:
            choice = dataclasses.replace(trainer.choice, num_inducing=num_inducing)
            model = dataclasses.replace(trainer, choice=choice).build(start, SINGLE)
            model.output_layer.num_neighbours = num_neighbours
            try:
                left_out = leave_one_out(model, 1, rows=self.rows)
            except CholeskyError:
                continue
            scores = self._scores(left_out)
            if best is None or is_ahead(scores, best[1], errors=1.0):
                best = model, scores, start, left_out
        if best is None:
            raise CholeskyError("No single layer could be fitted: covariances are singular.")
        model, scores, start, left_out = best
        square = scale_deviations(model, self.rows, left_out)
        if square != 1.0:
            parts = model.likelihood, left_out.means, square * left_out.variances
            scores = self._scores(PredictiveDistribution.of_components(*parts))
        trace = np.asarray([start.elbo] if start.trace is None else start.trace)
        trace = trace * len(trainer.X) / start.num_data
        history, note = history_of_fit(trace, len(trainer.X), began), SCALED * (square != 1.0)
        elbo = start.elbo * len(trainer.X) / start.num_data
        return self.kept(model, history, start, scores, began, elbo=elbo, note=note)

    def _near(self) -> Start:
        """A process fitted to rows given those near them; of several outputs one for each."""
        trainer, few = self.trainer, self.few
        if trainer.Y.shape[1] == 1:
            X, Y, weights = trainer.X, trainer.Y, trainer.weights_of_kernels
            steps, choice, seed = trainer.steps, trainer.choice, trainer.seed
            singles = SingleLayers(X, Y, weights, steps, choice, seed, self.record)
            is_given = trainer.choice.likelihood != "auto"
            return fit_to_near_rows(singles, few.start, few.plain, is_given=is_given)
        pairs = zip(*starts_of_outputs(trainer, few.plain, few.start), strict=True)
        near = [
            fit_to_near_rows(single_layers_of(trainer, index), chosen, [plain], is_given=True)
            for index, (plain, chosen) in enumerate(pairs)
        ]
        return joined(trainer, near)

    def _fitted_to_few(self, found: Found) -> Start:
        """A process of some rows, with precisions of all where its noise is Student's."""
        layer, likelihood, precisions = found.model.output_layer, found.model.likelihood, None
        if layer.precisions is not None:
            X, Y, weights = self.trainer.X, self.trainer.Y, self.trainer.weights
            data = X, Y, np.ones(len(X)) if weights is None else weights
            of_some = layer.precisions.numpy()
            precisions = precisions_of_all(data, layer.kernel, likelihood, self.some, of_some)
        return found.start._replace(
            kernel=layer.kernel,
            likelihood=likelihood,
            elbo=found.trial.elbo,
            precisions=precisions,
            trace=None,
            num_data=found.trial.num_data,
        )

    def deep(self) -> Found:
        """The deep model of some rows, conditioned on all, or one that is trained on all.

        The better one: where there is noise, some rows are not all that can be learned from.
        """
        found, trainer = self.few.best, self.trainer
        best = self.conditioned(found, policy.NEIGHBOURS, self.rows)
        if is_noise_free(found.start.likelihood):
            return best
        choice = dataclasses.replace(trainer.choice, batch_size=policy.EXACT_ROWS, output=None)
        trainer = dataclasses.replace(trainer, choice=choice)
        try:
            trained = Search(trainer, self.trials).trained(found.start, found.candidate)
            other = trained and self.conditioned(trained, policy.NEIGHBOURS, self.rows)
        except (CholeskyError, NonFiniteBoundError):
            return best
        return other if other and is_ahead(other.row_scores, best.row_scores) else best

    def heteroskedastic(self, trainer: Trainer) -> Found:
        """A single layer whose noise is a function of the inputs, with learned pseudo-targets.

        :param trainer: For minibatches.
        """
        began = time.perf_counter()
        start = trainer.heteroskedastic(self.few.plain[0])
        found = Search(trainer).trained(start, SINGLE)
        if found is None:
            raise CholeskyError("Heteroskedastic noise could not be fitted.")
        X, Y = trainer.X[self.rows], trainer.Y[self.rows]
        distribution = leave_one_out_of_heteroskedastic(found.model, X, Y)
        return self.kept(found.model, found.history, start, self._scores(distribution), began)

    def _scores(self, left_out: PredictiveDistribution) -> RowScores:
        return RowScores.of(left_out, self.trainer.Y[self.rows], self.trainer.steps)
