"""Single layers fitted to some rows given those near them, which are of all rows."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel
from scipy import stats

from gpflow_dwp.base import Array
from gpflow_dwp.gaussian_process.predictions import predict_given, sites
from gpflow_dwp.gaussian_process.student_noise import fit_student_noise
from gpflow_dwp.kernels.values import Parts, inverse_scales, parts_of
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedStudentT
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models.named_kernels import positive_by_exp
from gpflow_dwp.neighbours import Index, nearest, nearest_before, nearest_others
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.observations import has_atoms
from gpflow_dwp.selection.scores import is_better
from gpflow_dwp.selection.single_layers import SingleLayers
from gpflow_dwp.selection.starts import Start, best_start, noise_variance, predicts, warped_noise

__all__ = ["NearRows", "fit_to_near_rows"]

# Rows whose densities are maximised, and iterations.
_ROWS, _ITERATIONS = 1_000, 40
# Rows that tell whether errors have tails, and those that are left out of a fit of these.
_MOST_ROWS, _MOST_LEFT_OUT = 20_000, 4_000


def fit_to_near_rows(
    singles: SingleLayers, chosen: Start, plain: Sequence[Start], *, is_given: bool
) -> Start:
    """Fit a process by the density of some rows given their nearest of all that precede them.

    It sees what is too fast for the few rows that exact processes are fitted to. It starts where
    these ended, and where those of a patch of rows that are near each other do.

    :param singles: What exact processes are fitted with, of all rows.
    :param chosen: The one that was chosen: if it has a warp, it is tried here. Tails are tried if
        errors have some: of many rows near each other some contradict what few have told.
    :param plain: Processes with Gaussian noise or none, best first.
    :param is_given: Whether a warp and tails are kept whatever they predict, and no others tried.
    """
    began, near = time.perf_counter(), NearRows(singles.X, singles.order)
    patch, names = near.patch(), dict.fromkeys(start.name for start in plain[:2])
    starts = [
        singles.fit(each, patch, singles.max_iterations)
        for name in names
        for each in singles.initialisations(name, patch)
    ]
    starts += [each.apart() for each in plain[:2]]
    last = best_start(near.fit(singles, start, 0) for start in starts)
    best = last = near.fit(singles, last, _ITERATIONS, began)
    warp = warp_of(chosen.likelihood)
    if isinstance(warp, SinhArcsinh) and warp.trainable_parameters:
        began = time.perf_counter()
        warped = last._replace(likelihood=warped_noise(last, singles.Y))
        last = near.fit(singles, warped, _ITERATIONS, began)
        best = last if is_given or predicts(last, best, best) else best
    began, every = time.perf_counter(), np.arange(len(singles.order))
    if is_given and not isinstance(chosen.likelihood, WarpedStudentT):
        return best
    if not is_given and not _tails_are_better(singles, near, best):
        return best
    heavy = _with_tails(singles, best, near.others(every, best.kernel))
    heavy = singles.scored(heavy, began, *near.others(near.few, best.kernel))
    return heavy if is_given or heavy.scores is not None else best


def _tails_are_better(singles: SingleLayers, near: NearRows, best: Start) -> bool:
    """Whether errors have tails, and rows are better predicted with them that were left out.

    Other rows have told the factors of their neighbours, which flatters.
    """
    if best.scores is None or has_atoms(singles.Y, singles.steps):
        return False
    size = len(singles.order)
    if not _has_tails(singles, best, near.others(np.arange(size)[-_MOST_ROWS:], best.kernel)):
        return False
    seen = size - min(size // 5, _MOST_LEFT_OUT)
    heavy = _with_tails(singles, best, near.others(np.arange(seen), best.kernel, seen))
    left_out = near.others(np.arange(seen, size), best.kernel, seen)
    return is_better(*(singles.scores(each, *left_out) for each in (heavy, best)))


def _has_tails(singles: SingleLayers, start: Start, others: tuple[Index, Index]) -> bool:
    """Whether errors of rows are more likely of a Student's distribution than of a normal one."""
    rows, index = others
    Z, noise = sites(singles.Y[rows], singles.weights[rows], start.likelihood)
    mean, variance = predict_given(singles.X[rows], Z, noise, start.kernel, index)
    own = index[:, -1]
    errors = ((Z[own] - mean) / np.sqrt(variance + noise[own])[:, None]).ravel()
    df, _, scale = stats.t.fit(errors, floc=0.0)
    gain = stats.t.logpdf(errors, df, scale=scale) - stats.norm.logpdf(errors, scale=errors.std())
    return bool(gain.mean() > policy.LEVEL_NATS)


def _with_tails(singles: SingleLayers, best: Start, others: tuple[Index, Index]) -> Start:
    """The same process with Student's noise.

    :param others: Rows that it is fitted to, and of which others each is predicted.
    """
    likelihood = WarpedStudentT.of(best.likelihood)
    Z = likelihood.warp.forward(tf.constant(singles.Y)).numpy()
    rows, index = others
    data = singles.X[rows], Z[rows], singles.weights[rows]
    variance, precisions = noise_variance(likelihood), np.ones(len(Z))
    noise, df, precisions[rows] = fit_student_noise(*data, best.kernel, variance, index)
    noise = max(noise, 2.0 * likelihood.variance_lower_bound)
    likelihood = positive_by_exp(WarpedStudentT(likelihood.warp, noise, df))
    return best._replace(likelihood=likelihood, precisions=precisions)


class NearRows:
    """Finds neighbours of rows among all that count.

    :param X: Inputs, [N, D].
    :param order: The rows that count, in a random order: places below are places in it.
    :ivar few: Places of the rows whose densities are maximised: the last, as of all rows some of
        their neighbours precede them.
    """

    def __init__(self, X: Array, order: Index) -> None:
        self._inputs, self._X, self._order = X, X[order], order
        self.few = np.arange(len(order))[-_ROWS:]

    def fit(
        self, singles: SingleLayers, start: Start, max_iterations: int, began: float | None = None
    ) -> Start:
        """Maximise the densities of some rows; also with scores, where it is told when it began."""
        near = nearest_before(self._scaled(start.kernel), self.few, policy.NEIGHBOURS_OF_FIT)
        rows, index = self._within(near, self.few)
        fitted = singles.fit(start, rows, max_iterations, index)
        if began is None:
            return fitted
        return singles.scored(fitted, began, *self.others(self.few, fitted.kernel))

    def others(
        self, places: Index, kernel: Kernel | Parts, seen: int | None = None
    ) -> tuple[Index, Index]:
        """The nearest others of some rows, as :class:`Evidence` takes neighbours.

        :param seen: How many rows, in their order, may be neighbours; None for all.
        :return: All rows that come up, [U], and in terms of these the neighbours of each, its own
            last, [B, m + 1].
        """
        rows = self._scaled(kernel)
        known = rows[:seen]
        size = min(policy.NEIGHBOURS_OF_FIT, len(known) - 1)
        if places[-1] < len(known):
            return self._within(nearest_others(known, places, size), places)
        return self._within(nearest(known, rows[places], size), places)

    def patch(self) -> Index:
        """Rows that are as near to each other as can be."""
        middle = np.argmin(np.sum(self._X**2, axis=1))
        size = min(policy.ROWS_FOR_STARTS, len(self._order))
        return self._order[nearest(self._X, self._X[[middle]], size)[0]]

    def _scaled(self, kernel: Kernel | Parts) -> Array:
        parts = parts_of(kernel) if isinstance(kernel, Kernel) else kernel
        if not any(np.size(getattr(part, "lengthscales", ())) for part in parts):
            return self._X
        return self._X * inverse_scales(parts, self._X.shape[1]).numpy()

    def _within(self, near: Index, places: Index) -> tuple[Index, Index]:
        used, index = np.unique(np.column_stack([near, places]), return_inverse=True)
        index = index.reshape(len(places), -1)
        if used[0] < 0:
            used, index = used[1:], index - 1
        return self._order[used], index
