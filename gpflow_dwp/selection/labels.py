"""Labels and counts as numbers, which tell whether functions are sums of those of single inputs."""

from __future__ import annotations

import dataclasses

import numpy as np
from gpflow.likelihoods import Likelihood, Softmax
from scipy.stats import norm, rankdata

from gpflow_dwp.base import Array
from gpflow_dwp.models.named_kernels import SUMS
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.choice import CANDIDATE_KERNELS
from gpflow_dwp.selection.single_layers import SingleLayers
from gpflow_dwp.selection.starts import Start
from gpflow_dwp.selection.trainer import Trainer

__all__ = ["VARIANCE", "as_numbers", "sum_of_numbers"]

VARIANCE = 10.0
"""Of the functions of labels, counts and the like, where they start."""


def sum_of_numbers(trainer: Trainer, likelihood: Likelihood) -> Start | None:
    """A sum to start from, if as numbers observations have more evidence of it than of one kernel.

    The evidence is that of a Gaussian process with normal noise, as for the sums of numbers.

    :param trainer: Of all rows.
    :param likelihood: Of any kind.
    :return: Scaled to the variance at which functions start, or None.
    """
    X, Y = trainer.X, as_numbers(trainer.Y, likelihood)
    seen = np.isfinite(Y).all(axis=1)
    are_found = trainer.choice.most_iterations >= policy.FEWEST_ITERATIONS
    if X.shape[1] == 1 or seen.sum() < policy.FEWEST_ROWS or not are_found:
        return None
    weights, steps = trainer.weights, np.zeros(Y.shape[1])
    weights = None if weights is None else weights[seen]
    choice = dataclasses.replace(trainer.choice, likelihood="gaussian")
    singles = SingleLayers(X[seen], Y[seen], weights, steps, choice, trainer.seed)
    best = singles.with_sums(singles.plain(CANDIDATE_KERNELS))[0]
    if best.name not in SUMS:
        return None
    total = np.mean(best.make_kernel()(X[: policy.EXACT_ROWS], full_cov=False))
    parts = (part._replace(variance=VARIANCE / total * part.variance) for part in best.kernel)
    return Start(best.name, tuple(parts), likelihood)


def as_numbers(Y: Array, likelihood: Likelihood) -> Array:
    """Labels, counts and the like as numbers that a Gaussian process can be fitted to.

    Of labels there is a column for each class, of others the normal quantiles of their ranks.

    >>> import numpy as np
    >>> from gpflow.likelihoods import Poisson
    >>> as_numbers(np.array([[7.0], [0.0], [900.0]]), Poisson()).round(3).tolist()
    [[0.0], [-1.225], [1.225]]

    :param Y: Observations, [N, P], of which NaN are missing.
    :return: Of unit variance, [N, P] or [N, C]; NaN in rows where an observation is missing.
    """
    if isinstance(likelihood, Softmax):
        numbers = np.where(np.isnan(Y), np.nan, np.unique(Y[~np.isnan(Y)]) == Y)
    else:
        ranks = rankdata(Y, axis=0, nan_policy="omit")
        numbers = norm.ppf((ranks - 0.5) / np.sum(~np.isnan(Y), axis=0))
    numbers = numbers - np.nanmean(numbers, axis=0)
    return numbers / np.maximum(np.nanstd(numbers, axis=0), np.finfo(np.float64).tiny)
