"""Single layers: Gaussian processes of several kernels, initialisations and likelihoods."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
from gpflow import set_trainable
from gpflow.kernels import Constant, Kernel
from gpflow.likelihoods import Gaussian

from gpflow_dwp.base import Array
from gpflow_dwp.gaussian_process import fit_gaussian_process
from gpflow_dwp.gaussian_process.covariances import covariances_of
from gpflow_dwp.gaussian_process.fit import find_peaks
from gpflow_dwp.gaussian_process.predictions import leave_out, predict_given, sites
from gpflow_dwp.gaussian_process.student_noise import precisions_of_all
from gpflow_dwp.kernels.values import parts_of
from gpflow_dwp.likelihoods.named import MOST_NUGGET, LikelihoodName, likelihood_by_name
from gpflow_dwp.models.named_kernels import SUMS, positive_by_exp
from gpflow_dwp.neighbours import Index
from gpflow_dwp.random import random_order
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.choice import Choice
from gpflow_dwp.selection.leave_one_out import distribution_of
from gpflow_dwp.selection.levels import LEVELS, RADII, categories_of, with_points
from gpflow_dwp.selection.observations import has_atoms, shares_of_precision
from gpflow_dwp.selection.scores import RowScores, is_level
from gpflow_dwp.selection.starts import (
    Start,
    best_start,
    heavy_noise,
    initial_kernel,
    num_lengthscales,
    predicts,
    single_layer_jitter,
    warped_noise,
    with_one_scale,
)
from gpflow_dwp.selection.unseen import gains_unseen

__all__ = ["SingleLayers"]

# Lengthscales in units of the distance between two standardised rows, and noise by signal: of
# ratios that explain as much, as where no row tells of another, the first.
_SCALES = 2.0 ** np.arange(-6.0, 2.1)
_FINER = 2.0 ** np.arange(-8.0, -6.0)  # of many rows of one input
_Noise = tuple[LikelihoodName, Array, tuple[float, float]]
_NOISE: _Noise = "gaussian", np.array([1e2, 10.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-5]), (1e-4, 1.0)
_NUGGET: _Noise = "noise_free", np.array([1e-6, 1e-4]), (1e-6, MOST_NUGGET)
# Sums of functions of single inputs that are tried.
_SUMS = ("AdditiveSquaredExponential", "AdditiveMatern52")


class SingleLayers:
    """Fits exact Gaussian processes to some rows, or all, and compares them.

    :param X: Standardised inputs, [N, D].
    :param Y: Standardised observations, [N, P].
    :param weights: How often each row counts, [N], or None.
    :param steps: To which each column was recorded, [P].
    :param choice: Whether there is no noise, and how many iterations are taken.
    :param seed: For the choice of rows.
    :param record: Called with each process that was fitted, and the seconds that it took.
    :ivar order: Rows that count, in a random order.
    :ivar rows: The first of these, which are for choice.
    :ivar categories: See :func:`categories_of`.
    """

    def __init__(
        self,
        X: Array,
        Y: Array,
        weights: Array | None,
        steps: Array,
        choice: Choice,
        seed: int,
        record: Callable[[Start, float], object] = lambda *_: None,
    ) -> None:
        self.X, self.Y, self.steps = X, Y, steps
        self.weights = np.ones(len(X)) if weights is None else np.asarray(weights)
        self.max_iterations = min(100, choice.most_iterations)
        self._record = record
        self._noise = _NUGGET if choice.likelihood == "noise_free" else _NOISE
        self._row_means = choice.row_means
        self.order = random_order(len(X), seed)
        self.order = self.order[self.weights[self.order] > 0.0]
        self.rows = self.order[: policy.ROWS_FOR_CHOICE]
        distinct = [len(np.unique(column)) for column in X[self.rows].T]
        self._columns = [j for j, count in enumerate(distinct) if count > 2]
        self.categories = categories_of(X[self.rows])

    def plain(self, kernels: Sequence[str]) -> list[Start]:
        """Fit each kernel with Gaussian noise or none, from several initialisations; best first."""
        found = []
        for name in kernels:
            began = time.perf_counter()
            few = self.order[: policy.ROWS_FOR_STARTS]
            starts = [
                self.fit(start, rows, self.max_iterations)
                for rows in [few, *self._patches]
                for start in self.initialisations(name, rows)
            ]
            if self._patches:  # evidences of other rows do not compare
                starts = [self.fit(start, self.rows, 0) for start in starts]
            start = best_start(starts)
            if len(few) < len(self.rows):
                start = self.fit(start, self.rows, self.max_iterations)
            found.append(self.scored(start, began))
        found.sort(key=lambda start: -start.evidence)
        if len(kernels) > 1 and self.X.shape[1] > 1:
            began = time.perf_counter()
            best = next(start for start in found if start.name != LEVELS)
            common = best.apart(kernel=with_one_scale(best))
            common = self.scored(self.fit(common, self.rows, self.max_iterations), began)
            found.insert(0 if common.evidence > found[0].evidence else len(found), common)
        return found

    @functools.cached_property
    def _patches(self) -> list[Index]:
        """Of many rows of one input those in the middle, which show what is too fast for few."""
        size = policy.ROWS_FOR_STARTS
        if self.X.shape[1] > 1 or len(self.order) <= size:
            return []
        middle = (len(self.order) - size) // 2
        return [self.order[np.argsort(self.X[self.order, 0])][middle : middle + size]]

    def with_sums(self, joint: list[Start]) -> list[Start]:
        """Add a process whose kernel is a sum, first if it is ahead, or of few rows not far behind.

        :param joint: Processes with a kernel of all inputs alone, best first.
        """
        are_found = self.max_iterations >= policy.FEWEST_ITERATIONS
        if self.X.shape[1] == 1 or not self._columns or not are_found:
            return joint
        began, few = time.perf_counter(), self.order[: policy.ROWS_FOR_STARTS]
        starts = [start for name in _SUMS for start in self.initialisations(name, few)]
        starts.sort(key=lambda start: -start.evidence)
        most = min(self.max_iterations, policy.ITERATIONS)
        fitted = [self.fit(each, few, most) for each in starts[: policy.MOST_STARTS]]
        best = best_start(fitted)
        simpler = with_one_scale(best)
        line, common = (
            self.fit(best.apart(kernel=kernel), few, most) for kernel in (simpler[:2], simpler)
        )
        sums = best_start([*fitted, line, common])
        simplest = sums if sums is line else self._without_idle_parts(sums, few)
        sums = self._sum_of_rows(simplest, began)
        first, scores = joint[0], sums.scores
        lead = sums.evidence - first.evidence
        if scores is None:
            is_ahead = False
        elif len(self.rows) <= policy.FEW_ROWS:
            # Scores flatter what has a lengthscale of each input, and a line is level with it among
            # the rows and better beyond them: it may be behind by the count of two parameters.
            is_ahead = lead > -2.0 * policy.NATS_OF_PARAMETER
        else:
            is_ahead = lead > 0.0 and (first.scores is None or is_level(scores, first.scores))
        return [sums, *joint] if is_ahead else [*joint, sums]

    def with_noise_alone(self, plain: list[Start]) -> list[Start]:
        """Add a constant first, if inputs tell nothing of the observations.

        What is so fast that rows tell next to nothing of each other is noise: the others' evidence
        has a prior of lengthscales below √D here. Deeper models cannot start from a constant.

        :param plain: Processes with Gaussian noise or none, best first.
        """
        if self._noise is _NUGGET:
            return plain
        began, rows, best = time.perf_counter(), self.rows, plain[0]
        second = np.average(np.mean(self.Y[rows] ** 2, axis=1), weights=self.weights[rows])
        noise = self._noise_of(float(np.clip(second, *self._noise[2])))
        kernels = Constant(1e-8), Constant(1.0)  # Known, or to its standard error.
        set_trainable(kernels, False)
        alone, constant = (self.fit(Start("Constant", each, noise), rows, 0) for each in kernels)
        parts = parts_of(best.make_kernel())
        scales = np.hstack([np.ravel(getattr(part, "lengthscales", ())) for part in parts])
        short = np.minimum(np.log(scales / math.sqrt(self.X.shape[1])), 0.0)
        is_ahead = alone.evidence > best.evidence - 0.5 * short @ short
        return [self.scored(constant, began), *plain] if is_ahead else plain

    def sum_from(self, sums: Start) -> Start:
        """Fit a sum from one that was fitted to other observations."""
        began, few = time.perf_counter(), self.order[: policy.ROWS_FOR_STARTS]
        sums = self.fit(sums.apart(), few, min(self.max_iterations, policy.ITERATIONS))
        return self._sum_of_rows(self._without_idle_parts(sums, few), began)

    def _sum_of_rows(self, sums: Start, began: float) -> Start:
        """Fit it to all rows for choice, from few."""
        if len(self.rows) > policy.ROWS_FOR_STARTS:
            most = min(self.max_iterations, policy.ITERATIONS)
            sums = self.fit(sums, self.rows, most)
        return self.scored(sums, began)

    def _without_idle_parts(self, sums: Start, rows: Index) -> Start:
        """Leave out each function of a single input that the evidence does not miss."""
        for part in sorted(sums.kernel[2:], key=lambda part: part.variance):
            rest = tuple(each for each in sums.kernel if each.active_dims != part.active_dims)
            sums = best_start([sums, self.fit(sums._replace(kernel=rest), rows, 0)])
        return sums

    def with_likelihood(self, start: Start, likelihood: str) -> Start:
        """Fit a kernel with the likelihood of a name, from a fitted process."""
        if likelihood in ("warped", "warped_student_t"):
            start = self._refit(start, warped_noise(start, self.Y))
        if likelihood in ("student_t", "warped_student_t"):
            start = self._refit(start, heavy_noise(start))
        return start

    def best_warp(self, plain: Sequence[Start]) -> Start:
        """Choose a warp, or none, by evidence, if what it predicts does not object.

        :param plain: Processes with Gaussian noise or none, best first. With a warp the best kernel
            may be another, so each is tried.
        """
        best = plain[0]
        if has_atoms(self.Y, self.steps):
            return best
        joint = [start for start in plain if start.name not in SUMS]
        tried = plain[:2] if best.name in SUMS else joint  # what sums are behind of, all of them
        kernels = [*{start.name: start for start in reversed(tried)}.values()]
        if self._noise is _NUGGET:
            kernels = self._bent(best, kernels)
        warped = [self._refit(start, warped_noise(start, self.Y)) for start in kernels]
        for other in sorted(warped, key=lambda start: -start.evidence):
            if other.evidence > best.evidence and predicts(other, best, best):
                is_kept = gains_unseen(self, other, best)
                best = other if is_kept else best
                if is_kept or other.name != LEVELS:  # half of the rows may not tell points
                    break
        return best

    def _bent(self, best: Start, kernels: Sequence[Start]) -> list[Start]:
        """The kernel that a warp without noise goes with, by few rows; none if it does not pay."""
        few = self.order[: policy.ROWS_FOR_STARTS]

        def fitted(start: Start) -> Start:
            return self.fit(start.apart(), few, self.max_iterations)

        def bent(start: Start) -> Start:
            return fitted(start._replace(likelihood=warped_noise(start, self.Y)))

        if not bent(best).evidence > fitted(best).evidence + policy.SURE_NATS:
            return []
        return [max(kernels, key=lambda start: bent(start).evidence)]

    def best_likelihood(self, plain: Sequence[Start]) -> Start:
        """Choose a warp, and tails, by evidence, if what they predict does not object.

        A warp has to pay in rows that it was not fitted to: as steep as where no row is missed by
        far, it misses others. Tails guard against that, and a gain of predictions is enough: their
        evidence is a bound.

        :param plain: Processes with Gaussian noise, best first.
        """
        best = self.best_warp(plain)
        if has_atoms(self.Y, self.steps):
            return best
        heavy = best_start([self._refit(best, heavy_noise(best)), *self._robust(best.name)])
        if heavy.evidence > best.evidence:
            is_kept = predicts(heavy, best, plain[0], errors=0.0)
        else:
            is_kept = predicts(heavy, best, plain[0], least=policy.LEVEL_NATS)
        return heavy if is_kept else best

    def initialisations(self, name: str, rows: Index) -> list[Start]:
        """Initial values, common to all inputs: peaks of the evidence over lengthscales."""
        num_inputs, (_, ratios, limits) = self.X.shape[1], self._noise
        if name == LEVELS and any(self.categories):
            plain = self.initialisations("Matern52", rows)
            best = best_start(self.fit(each, rows, self.max_iterations) for each in plain)
            data = self.X[rows], self.Y[rows]
            return [with_points(best, *data, self.categories, radius) for radius in RADII]
        kernel = initial_kernel(name, num_inputs, columns=self._columns)
        if isinstance(kernel, Kernel):
            return [Start(name, kernel, self._noise_of(0.1 * limits[1]))]
        pooled = 0.0 if self._row_means is None else self._row_means.pooled_variance.sum()
        scales = np.append(_FINER if self._patches else [], _SCALES)
        X = self.X[rows]
        covariances = covariances_of(kernel, [(X, X)])
        vector, starts = covariances.start(), []
        peaks = find_peaks(covariances, self.Y[rows], self.weights[rows], scales, ratios, pooled)
        for nats, scale, signal, ratio in peaks[: policy.MOST_STARTS]:
            change = np.log(scale) * covariances.scanned
            change += np.log(np.clip(signal, 1e-2, 1e2)) * ~covariances.lengthscales
            variance = float(np.clip(signal * ratio, *limits))
            kernel = covariances.values(vector + change)
            starts.append(Start(name, kernel, self._noise_of(variance), evidence=nats))
        return starts

    def _noise_of(self, variance: float) -> Gaussian:
        if self._row_means is None:
            return positive_by_exp(likelihood_by_name(self._noise[0], 1, variance))
        return positive_by_exp(self._row_means.starting_at(variance))

    def _robust(self, name: str) -> list[Start]:
        """Student's noise from where a process of all but outliers ends, if there are some."""
        precisions = shares_of_precision(self.Y)
        if precisions.min() == 1.0:
            return []
        few = self.order[precisions[self.order] == 1.0][: policy.ROWS_FOR_STARTS]
        starts = self.initialisations(name, few)
        start = best_start(self.fit(each, few, self.max_iterations) for each in starts)
        return [self._refit(start._replace(precisions=precisions), heavy_noise(start))]

    def _refit(self, start: Start, likelihood: Gaussian) -> Start:
        began = time.perf_counter()
        start = start.apart(likelihood=likelihood)
        most = policy.ITERATIONS if start.name in SUMS else self.max_iterations
        return self.scored(self.fit(start, self.rows, min(most, self.max_iterations)), began)

    def fit(
        self, start: Start, rows: Index, max_iterations: int, neighbours: Index | None = None
    ) -> Start:
        """Fit it to some rows; its evidence is less what parameters count for.

        :param neighbours: For the densities of some of these given others, as for
            :class:`Evidence`.
        """
        fitted = fit_gaussian_process(
            (self.X[rows], self.Y[rows], self.weights[rows]),
            start.kernel,
            start.likelihood,
            neighbours=neighbours,
            precisions=None if start.precisions is None else start.precisions[rows],
            steps=self.steps,
            jitter=single_layer_jitter(start.likelihood),
            max_iterations=max_iterations,
        )
        precisions = None
        if fitted.precisions is not None:
            data = self.X, self.Y, self.weights
            precisions = precisions_of_all(
                data, fitted.kernel, start.likelihood, rows, fitted.precisions
            )
        has_tails = precisions is not None
        num_of_noise = sum(int(np.size(each)) for each in start.likelihood.trainable_parameters)
        num_fitted = len(rows) if neighbours is None else len(neighbours)
        penalty = 0.5 * (num_of_noise - has_tails) * math.log(num_fitted)
        num_counted = has_tails + num_lengthscales(start.kernel)
        if isinstance(start.kernel, tuple) and len(start.kernel) > 1:  # each has a variance
            num_counted += len(start.kernel) - 1
            penalty -= fitted.log_prior
        penalty += policy.NATS_OF_PARAMETER * num_counted
        return start._replace(
            kernel=fitted.kernel,
            elbo=fitted.elbo,
            evidence=fitted.elbo - penalty,
            trace=fitted.trace,
            precisions=precisions,
            num_data=num_fitted,
            scores=None,
        )

    def scored(
        self, start: Start, began: float, rows: Index | None = None, near: Index | None = None
    ) -> Start:
        """With leave-one-out scores of the rows for choice, in order, or of some given others."""
        rows = np.sort(self.rows) if rows is None else rows
        try:
            scores = self.scores(start, rows, near)
        except (FloatingPointError, ValueError, tf.errors.InvalidArgumentError):
            start = start._replace(evidence=-math.inf)
        else:
            start = start._replace(scores=scores)
        num_left = len(rows) if near is None else len(near)
        self._record(start._replace(num_data=num_left), time.perf_counter() - began)
        return start

    def scores(
        self, start: Start, rows: Index, near: Index | None = None, *, has_crps: bool = True
    ) -> RowScores:
        """Leave-one-out scores of rows, or of some given others, as for :class:`RowScores`."""
        precisions = None if start.precisions is None else start.precisions[rows]
        seen = sites(self.Y[rows], self.weights[rows], start.likelihood, precisions)
        if near is None:
            mean, variance = leave_out(self.X[rows], *seen, start.kernel)
        else:
            mean, variance = predict_given(self.X[rows], *seen, start.kernel, near)
            rows = rows[near[:, -1]]
        moments = mean[None], variance[None]
        left_out = distribution_of(start.likelihood, self.X[rows], *moments, self.weights[rows])
        return RowScores.of(left_out, self.Y[rows], self.steps, has_crps=has_crps)
