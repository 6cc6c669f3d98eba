"""Scores of a trained model: its bound, and how well it predicts in raw units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow import default_float
from gpflow.base import RegressionData
from scipy import stats

from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.random import as_seed, fold_in

# CRPS and quantiles of more draws are dear.
_LARGEST_MIXTURE = 200
# Rows that go through a model at once, and how many draws of the whole path are affordable.
_BLOCK = 2_000
_MOST_SEEDS, _FEWEST_SEEDS = 100, 10


def whole_data_bound(
    model: VariationalModel,
    data: RegressionData,
    *,
    num_importance_samples: int = 1,
    num_seeds: int | None = None,
    seed: int = 0,
) -> tuple[float, float]:
    """Estimate the bound per row of the whole training set, and the estimate's standard error.

    :param data: Its training data, standardised, [N, D] and [N, 1].
    :param num_seeds: Estimates to average, each of S draws; None for 100, and for fewer, but not
        fewer than 10, above 2,000 rows.
    :return: Mean and standard error, in nats per row.
    """
    X, Y = (tf.convert_to_tensor(part, default_float()) for part in data)
    num_rows = int(X.shape[0])
    if num_seeds is None:
        num_seeds = max(_FEWEST_SEEDS, _MOST_SEEDS * _BLOCK // max(num_rows, _BLOCK))
    signature = [
        *(tf.TensorSpec([None, part.shape[1]], part.dtype) for part in (X, Y)),
        tf.TensorSpec([2], tf.int32),
    ]

    @tf.function(input_signature=signature, autograph=False)
    def terms(X: tf.Tensor, Y: tf.Tensor, seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        result = model.elbo_terms((X, Y), num_importance_samples=num_importance_samples, seed=seed)
        return result.data, tf.reduce_sum(result.log_ratios)

    blocks = [slice(start, start + _BLOCK) for start in range(0, num_rows, _BLOCK)]
    # Training folds steps, which are not negative, into the same seed.
    base = fold_in(as_seed(seed), -1)
    bounds = []
    for number in range(num_seeds):
        parts = [terms(X[block], Y[block], fold_in(base, number)) for block in blocks]
        # One seed draws one path through the layers, so the log ratios of all blocks are the same.
        data_term = sum(
            len(X[block]) / num_rows * float(part[0])
            for block, part in zip(blocks, parts, strict=True)
        )
        bounds.append((data_term + float(parts[0][1])) / num_rows)
    error = np.std(bounds, ddof=1) / np.sqrt(num_seeds) if num_seeds > 1 else np.nan
    return float(np.mean(bounds)), float(error)


def prediction_scores(
    model: VariationalModel,
    X: npt.NDArray[np.float64],
    Y: npt.NDArray[np.float64],
    target: Standardiser,
    *,
    num_samples: int = 100,
    marginals: bool = False,
    seed: int = 0,
) -> dict[str, float]:
    """Judge predictions of test rows, in raw units.

    :param X: Test inputs, standardised, [N, D].
    :param Y: Test targets in raw units, [N, 1].
    :param num_samples: S, the draws that make up the predictive mixture. CRPS and intervals take
        the first 200 of them.
    :param marginals: Whether to add what Salimbeni et al. (2019) print, in standardised units.
    :return: test_log_likelihood (nats per row), rmse, crps, and the shares of targets within
        central intervals: coverage_50, coverage_90, coverage_95. With ``marginals``
        log_likelihood_standardised, that of the mixture itself; log_likelihood_kernel, by kernel
        density estimates from S draws of each row's target; and shapiro_wilk, that statistic's
        median over the rows, from the same draws.
    """
    posterior = model.posterior(num_samples, seed=seed)
    distribution = RawUnits(model, output_standardiser=target).distribution(posterior, X)
    truth = np.asarray(Y, np.float64)
    log_likelihood = float(distribution.log_density(truth).mean())
    # Where the noise is a mixture, its components stand outside the draws.
    weights = distribution.weights
    nodes = 1 if weights is None else len(model.likelihood.log_component_weights())
    few = np.arange(len(distribution.means)).reshape(nodes, -1)[:, :_LARGEST_MIXTURE].ravel()
    fewer = replace(
        distribution,
        means=distribution.means[few],
        variances=distribution.variances[few],
        weights=None if weights is None else weights[few] / weights[few].sum(),
    )
    scores = {
        "test_log_likelihood": log_likelihood,
        "rmse": float(np.sqrt(np.mean(np.square(truth - distribution.mean())))),
        "crps": float(fewer.crps(truth).mean()),
    }
    for percent in (50, 90, 95):
        low, high = fewer.quantile([0.5 - 0.005 * percent, 0.5 + 0.005 * percent])
        scores[f"coverage_{percent}"] = float(np.mean((low <= truth) & (truth <= high)))
    if marginals:
        samples = target.transform(distribution.sample(num_samples, seed))[..., 0]
        densities = [
            stats.gaussian_kde(column, "silverman").logpdf(value)
            for value, column in zip(target.transform(truth)[:, 0], samples.T, strict=True)
        ]
        scores["log_likelihood_standardised"] = log_likelihood - target.log_density_offset
        scores["log_likelihood_kernel"] = float(np.mean(densities))
        scores["shapiro_wilk"] = float(
            np.median([stats.shapiro(column).statistic for column in samples.T])
        )
    return scores
