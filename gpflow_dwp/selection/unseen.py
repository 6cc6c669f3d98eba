"""What processes predict of rows that they were not fitted to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from gpflow_dwp.base import Array
from gpflow_dwp.gaussian_process.predictions import predict, sites, solved
from gpflow_dwp.likelihoods.named import is_noise_free
from gpflow_dwp.neighbours import Index
from gpflow_dwp.random import random_order
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.leave_one_out import distribution_of
from gpflow_dwp.selection.scores import RowScores
from gpflow_dwp.selection.starts import Start

if TYPE_CHECKING:
    from gpflow_dwp.selection.single_layers import SingleLayers

__all__ = ["gains_unseen"]


def gains_unseen(singles: SingleLayers, other: Start, best: Start) -> bool:
    """Whether a process predicts rows better that it was not fitted to.

    Of few rows that is each half from the other half, and it has to gain log density and miss
    none by far, as by a tenth of all gains, or to gain much CRPS. Of many rows it must not be
    far worse: some of them do not always tell a good warp. Without noise a process that is fitted
    to fewer rows is another one: there it has to be far better for rows that are left out.
    """
    if is_noise_free(best.likelihood):
        of_other, of_best = (
            each.scores.mean.crps if each.scores else np.nan for each in (other, best)
        )
        return bool(np.log(of_best / of_other) > policy.LOSS_OF_WARP)
    with np.errstate(invalid="ignore"):  # NaN, where both fail, is no gain
        gains = _unseen(singles, other) - _unseen(singles, best)
    (density, crps), num_rows = gains.mean(0), gains.shape[2]
    if num_rows < len(singles.rows):
        return bool(density.mean() > -policy.LOSS_OF_WARP)
    errors = gains.mean(0).std(1) / math.sqrt(num_rows)
    misses = gains[:, 0].min() < -max(policy.MOST_NATS_OF_A_ROW, 0.1 * density.sum())
    is_ahead = density.mean() > errors[0] and not misses
    return bool(is_ahead or -crps.mean() > policy.SURE_GAIN_OF_CRPS * errors[1])


def _unseen(singles: SingleLayers, start: Start) -> Array:
    """Log density and CRPS of rows that processes were not fitted to, [1 or 2, 2, N*]."""
    num_rows, num_few = len(singles.rows), policy.ROWS_FOR_STARTS
    if num_rows > num_few:
        return _predicted(singles, start, singles.rows[:num_few], singles.rows[num_few:])[None]
    scores = np.empty((2, 2, num_rows))
    for seed, found in enumerate(scores):
        halves = np.array_split(random_order(num_rows, seed), 2)
        for seen, unseen in (halves, halves[::-1]):
            found[:, unseen] = _predicted(singles, start, singles.rows[seen], singles.rows[unseen])
    return scores


def _predicted(singles: SingleLayers, start: Start, seen: Index, unseen: Index) -> Array:
    """Log density and CRPS of some rows under the process, fitted to others from its values."""
    start = singles.fit(start.apart(), seen, singles.max_iterations)
    kernel, likelihood = start.kernel, start.likelihood
    X, new = singles.X[seen], singles.X[unseen]
    try:
        of_rows = solved(X, *sites(singles.Y[seen], singles.weights[seen], likelihood), kernel)
        mean, variance = predict(X, kernel, *of_rows, new)
        distribution = distribution_of(likelihood, new, mean[None], variance[None])
    except (FloatingPointError, ValueError, tf.errors.InvalidArgumentError):
        return np.array(RowScores.none(len(unseen))[:2])
    return np.array(RowScores.of(distribution, singles.Y[unseen], singles.steps)[:2])
