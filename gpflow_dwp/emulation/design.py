"""Where to run the simulator next."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.likelihoods import Gaussian

from gpflow_dwp.base import Array
from gpflow_dwp.emulation.emulator import Emulator, as_emulator, sobol_points
from gpflow_dwp.likelihoods import HeteroskedasticGaussian
from gpflow_dwp.validation import check_choice, check_integers

__all__ = ["Criterion", "suggest"]

Criterion = Literal["ALM", "ALC"]
"""Largest variance (MacKay, 1992), or integrated variance (Cohn, 1996)."""

# Draws whose joint covariance of all candidates is taken; of a chain it is that of draws alone.
_DRAWS, _DRAWS_OF_CHAIN = 40, 200


def suggest(
    model: Any,
    bounds: npt.ArrayLike,
    batch: int = 1,
    *,
    criterion: Criterion = "ALC",
    candidates: npt.ArrayLike | int = 400,
    replicates: bool = False,
    seed: int | None = None,
) -> Any:
    r"""Return the inputs of the next runs.

    Of the candidates, "ALM" takes the one where the function's variance is largest (MacKay,
    "Information-based objective functions for active data selection", 1992), and "ALC" the one that
    a run at which would reduce the variance of all candidates most, on average (Cohn, "Neural
    network exploration using optimal experiment design", 1996):

    .. math:: \sum_{x'} \frac{\operatorname{cov}(f(x), f(x'))^2}
              {\operatorname{var} f(x) + \sigma^2} .

    Covariances are those of the mixture of all draws, and further runs of a batch are chosen given
    those before by the same rule of normals. Outputs count alike, in units of their deviations.
    Where failures are modelled, values are multiplied by the chance of success, 0 below a half.

    With ``replicates`` inputs of the runs are candidates as well, and any may come again (Binois et
    al., "Replication or exploration? Sequential design for stochastic simulation experiments",
    2019, whose criterion "ALC" then is, one run ahead).

    :param model: A fitted estimator or a trained model.
    :param bounds: Lower and upper bound of each input, [D, 2], or by the names of columns; all
        levels of a category, which has none, are proposed, and whole numbers where inputs are such.
    :param batch: Number of runs, B.
    :param criterion: What is looked for.
    :param candidates: Inputs to choose from, [N, D], or how many scrambled Sobol points.
    :param replicates: Whether runs may be made again.
    :param seed: Of these points; None for the number of runs so far, so that each call has others.
    :return: [B, D], in raw units; a frame if the runs were one with categories or whole numbers.
    :raises ValueError: If the model is not fitted, candidates are outside of the bounds, or fewer
        than the batch.
    """
    check_integers(batch=batch)
    check_choice(get_args(Criterion), criterion=criterion)
    emulator = as_emulator(model)
    limits = emulator.columns.limits(bounds)
    if isinstance(candidates, int | np.integer):
        check_integers(at_least=batch, candidates=candidates)
        if seed is None:
            models = [emulator.model] if emulator.model else [each.model_ for each in model.links]
            seed = sum(each.num_data for each in models)
        X = emulator.columns.expanded(sobol_points(limits, int(candidates), seed))
    else:
        X = emulator.points("candidates", candidates)
    codes = emulator.columns.codes(X)
    outside = ((limits[:, 0] > codes) | (limits[:, 1] < codes)).any(axis=1)
    if outside.any():
        raise ValueError(f"candidates must lie within bounds, got {X[outside][0].tolist()}.")
    check_integers(at_least=batch, candidates=len(X))
    success = emulator.success(X)
    likely = success >= 0.5
    success = counts = np.where(likely | (likely.sum() < batch), success, 0.0)
    if replicates:
        runs = np.unique(emulator.runs, axis=0)
        X, counts = np.concatenate([X, runs]), np.append(success, np.zeros(len(runs)))
        success = np.append(success, np.ones(len(runs)))
    covariance, noise = _covariance(emulator, X)
    chosen: list[int] = []
    for _ in range(batch):
        variance = np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0)
        gain = variance
        if criterion == "ALC":
            gain = (covariance**2 @ counts) / (variance + noise)
        gain = gain.sum(0) * success
        gain[[] if replicates else chosen] = -np.inf
        best = int(gain.argmax())
        chosen.append(best)
        column = covariance[:, :, best]
        scaled = column / (column[:, [best]] + noise[:, [best]])
        covariance = covariance - scaled[:, :, None] * column[:, None, :]
    return emulator.columns.decoded(X[chosen]) if getattr(model, "columns_", None) else X[chosen]


def _covariance(emulator: Emulator, X: Array) -> tuple[Array, Array]:
    """Covariance of functions, [Q, N, N], and variance of noise, [Q, N], as a warp has them."""
    if emulator.model is None:
        posterior = emulator.estimator._draws(_DRAWS_OF_CHAIN, emulator.seed)
    else:
        posterior = emulator.model.posterior(_DRAWS, seed=emulator.seed)
    at, outputs = emulator.units.to_model(X), emulator.num_outputs
    covariance = posterior.predict_f(at, full_cov=True)[1].numpy()[:outputs]
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    noise, likelihood = np.zeros_like(variance), posterior.likelihood
    if isinstance(likelihood, HeteroskedasticGaussian):
        noise = posterior.predict_y(at)[1].numpy().T - variance
    elif isinstance(likelihood, Gaussian) and likelihood.variance is not None:
        noise = noise + np.reshape(tf.convert_to_tensor(likelihood.variance), [-1, 1])
    # A deterministic candidate that was chosen has no variance left.
    return covariance, np.maximum(noise, 1e-10 * variance.mean(axis=1, keepdims=True))
