"""Leave-one-out scores of each row, and what is better by them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.pareto_smoothing import MOST_K
from gpflow_dwp.selection import policy

__all__ = [
    "LeaveOneOut",
    "RowScores",
    "crps_without_inputs",
    "gains",
    "is_ahead",
    "is_better",
    "is_level",
    "no_worse",
    "standard_error",
    "varies",
]


class LeaveOneOut(NamedTuple):
    """Scores of what a model predicts of each row from all others.

    :param log_density: Mean log density, per unit of the observations; of those that are recorded
        to a step that of their cells.
    :param crps: Mean continuous ranked probability score, in the unit of the observations.
    """

    log_density: float
    crps: float


class RowScores(NamedTuple):
    """Scores of predictions of rows that a model had not seen.

    :param log_density: Log density of each row, all columns together, [N].
    :param crps: Continuous ranked probability score of each row, summed over columns, [N].
    :param is_sane: Whether moments are finite, and not far from all that was observed.
    :param squares: Squared errors by predicted variances, summed over columns, [N].
    :param k_hat: Of smoothed scores how far to rely on them, [N].
    """

    log_density: Array
    crps: Array
    is_sane: bool = True
    squares: Array | None = None
    k_hat: Array | None = None

    @classmethod
    def of(
        cls,
        distribution: PredictiveDistribution,
        Y: Array,
        steps: Array,
        *,
        has_crps: bool = True,
    ) -> RowScores:
        """Score predictions.

        :param Y: What was observed, [N, P], NaN where it was not.
        :param steps: To which each column was recorded, [P].
        :param has_crps: Whether CRPS is of use, which takes most of the time; NaN if not.
        """
        mean, variance, is_seen = distribution.mean(), distribution.variance(), ~np.isnan(Y)
        low, high = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
        reach = policy.MARGIN * (high - low)
        with np.errstate(invalid="ignore"):
            is_sane = bool(
                np.all(np.isfinite(mean) & np.isfinite(variance))
                and np.all((mean >= low - reach) & (mean <= high + reach))
                and np.all(np.sqrt(variance) <= reach)
            )
        squares = (Y - mean) ** 2 / np.maximum(variance, np.finfo(float).tiny)
        crps = distribution.crps(Y) if has_crps else np.full_like(Y, np.nan)
        scores = distribution.log_density(Y, steps), crps, squares
        log_density, crps, squares = (each.sum(1, where=is_seen) for each in scores)
        return cls(log_density, crps, is_sane, squares)

    @classmethod
    def smoothed(
        cls,
        distribution: PredictiveDistribution,
        Y: Array,
        steps: Array,
        *,
        has_crps: bool = True,
    ) -> RowScores:
        """Score mixtures of draws that have seen each row, weighted as if they had not.

        Rows for which weights cannot be relied on keep their scores without: at a jump a few draws
        would decide.
        """
        weighted, k_hat = distribution.without_own_row(Y)
        flat, smooth = (
            cls.of(each, Y, steps, has_crps=has_crps) for each in (distribution, weighted)
        )
        pairs = zip(flat[:2], smooth[:2], strict=True)
        log_density, crps = (np.where(k_hat > MOST_K, *pair) for pair in pairs)
        return cls(log_density, crps, flat.is_sane and smooth.is_sane, k_hat=k_hat)

    @classmethod
    def none(cls, num_rows: int) -> RowScores:
        """Those of a model that has not been trained."""
        return cls(np.full(num_rows, -np.inf), np.full(num_rows, np.inf))

    @property
    def mean(self) -> LeaveOneOut:
        """Their means."""
        return LeaveOneOut(float(self.log_density.mean()), float(self.crps.mean()))


def crps_without_inputs(Y: Array) -> float:
    """CRPS of rows [N, P] by the distribution of all, ½ E|y - y'|, summed over columns.

    Of columns in which some are missing it is in the mean over all rows, as scores are.
    """
    total = 0.0
    for column in Y.T:
        seen = np.sort(column[~np.isnan(column)])
        ranks = 2.0 * np.arange(len(seen)) - len(seen) + 1.0
        total += float(ranks @ seen) / (len(seen) * len(Y))
    return total


def varies(squares: Array | None, X: Array) -> bool:
    """Whether errors are larger than predicted at some inputs, smaller at others: at 1 percent.

    N R² of the regression of squared errors on inputs and their squares is χ² of 2 D degrees of
    freedom (Breusch and Pagan, 1979, as Koenker, 1981, has it).

    :param squares: Of :class:`RowScores`, [N]; None where that is not known.
    :param X: Standardised inputs, [N, D].
    """
    if squares is None:
        return True
    features = np.hstack([X, X**2, np.ones((len(X), 1))])
    if len(X) <= 2 * features.shape[1] or not np.isfinite(squares).all():
        return True
    residual = squares - features @ np.linalg.lstsq(features, squares, rcond=None)[0]
    explained = len(X) * (1.0 - residual.var() / squares.var())
    return bool(explained > chi2.ppf(0.99, 2 * X.shape[1]))


def no_worse(crps: Array, reference: Array) -> bool:
    """Whether a mean CRPS is at most the other one's, within a standard error and 5 percent.

    :param crps: Scores of rows, [N].
    :param reference: Scores of the same rows, [N].
    """
    excess = crps - reference
    return bool(excess.mean() <= min(standard_error(excess), policy.LEVEL * reference.mean()))


def is_level(scores: RowScores, best: RowScores) -> bool:
    """Whether predictions do not object to what the evidence says."""
    is_as_dense = scores.mean.log_density > best.mean.log_density - policy.LEVEL_NATS
    return is_as_dense and no_worse(scores.crps, best.crps)


def gains(scores: RowScores, reference: RowScores) -> Array:
    """What one model's log density of each row is above another's, [N], up to 20 nats either way.

    A row that is missed is missed: by how much would else decide alone where tails are heavy.
    """
    most = policy.MOST_NATS_OF_A_ROW
    return np.clip(scores.log_density - reference.log_density, -most, most)


def is_ahead(scores: RowScores, best: RowScores, errors: float = 0.0) -> bool:
    """Whether one of two models that cost the same predicts better, by mean log density.

    :param errors: By how many standard errors of the gain, at least.
    """
    gain = gains(scores, best)
    return scores.is_sane and bool(gain.mean() > errors * standard_error(gain))


def is_better(scores: RowScores, reference: RowScores) -> bool:
    """Whether one of two models predicts better: by log density, if CRPS does not object.

    Differences of rows are paired. Both scores have to be better, and one of them by more than its
    standard error: next to a jump few rows decide densities. Where the gain is sure, by three of
    its own, CRPS may be higher by one of its: of few runs one on the edge may make it so.

    :param scores: Of the model that has to prove itself.
    :param reference: Of the other one, for the same rows.
    """
    gain, nearer = gains(scores, reference), reference.crps - scores.crps
    error, error_of_crps = standard_error(gain), standard_error(nearer)
    is_clear = gain.mean() > error or nearer.mean() > error_of_crps
    is_sure = gain.mean() > policy.SURE_ERRORS * error and nearer.mean() >= -error_of_crps
    is_gain = scores.is_sane and gain.mean() > policy.LEVEL_NATS
    return bool(is_gain and (is_sure or (is_clear and nearer.mean() > 0.0)))


def standard_error(values: Array) -> float:
    """That of a mean over rows, [N]."""
    return float(values.std() / np.sqrt(len(values)))
