"""A fitted regressor that takes in further runs."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING

import numpy as np
from gpflow import Parameter
from gpflow.likelihoods import Gaussian
from threadpoolctl import threadpool_limits

from gpflow_dwp.base import Array
from gpflow_dwp.exceptions import CollapseWarning
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods.named import is_noise_free
from gpflow_dwp.models import KERNELS, DeepWishartProcess, build_deep_wishart_process
from gpflow_dwp.selection import leave_one_out, select_model
from gpflow_dwp.selection.deepening import start_at_smaller
from gpflow_dwp.training import fit

if TYPE_CHECKING:
    from gpflow_dwp.estimator._base import DeepWishartEstimator

__all__ = ["model_with_runs"]

# Where the noise of a deep model starts again: new runs may be a surprise.
_LEAST_NOISE = 1e-4
_MOST_INDUCING = 100
# Up to so many runs a deep model is trained from the start as well, with so many times the steps:
# what one of few runs took to be chance stays that, however long it goes on.
_FEW_RUNS, _TIMES_ANEW = 120, 6
_DRAWS = 40


def model_with_runs(
    estimator: DeepWishartEstimator, X: Array, Y: Array, num_steps: int
) -> DeepWishartProcess:
    """Build the model of an estimator for further runs as well, and train it.

    :param X: Standardised inputs of the new runs, [B, D].
    :param Y: Standardised outputs, [B, Q].
    :raises ValueError: If its output layer is no regression.
    """
    old = estimator.model_
    layer = old.output_layer
    if not isinstance(layer, RegressionGPLayer):
        raise ValueError("tell needs a model whose output layer is a regression on its rows.")
    data = np.concatenate([layer.inputs, X]), np.concatenate([layer.targets, Y])
    likelihood, kernel = old.likelihood, type(layer.kernel).__name__
    variance = likelihood.variance if type(likelihood) is Gaussian else None
    has_one_noise = isinstance(variance, Parameter) and variance.shape.rank == 0
    is_deep = bool(old.hidden_layers)
    is_small = isinstance(estimator.kernel, str) and len(data[0]) <= _FEW_RUNS
    anew = None
    if has_one_noise and kernel in KERNELS and (is_small or not is_deep):
        # In a single layer as fast as to go on. It may find what the first runs did not tell.
        anew = select_model(
            data,
            depth=len(old.layers),
            kernel=kernel,
            likelihood="noise_free" if is_noise_free(likelihood) else "gaussian",
            num_inducing=estimator.num_inducing,
            posterior=estimator.posterior,
            whiten=estimator.whiten,
            width=old.hidden_layers[0].df if is_deep else None,
            num_steps=_TIMES_ANEW * num_steps if is_deep else None,
            seed=estimator._seed,
            progress=False,
        ).model
        if not is_deep:
            return anew
    most = estimator.num_inducing
    if most == "auto":
        most = _MOST_INDUCING
    points = np.asarray(old.inducing_variable.Z)
    Z = np.concatenate([points, X[: max(0, most - len(points))]])
    new = build_deep_wishart_process(
        data,
        len(old.layers),
        width=old.hidden_layers[0].df if is_deep else None,
        posterior=estimator.posterior,
        whiten=estimator.whiten,
        inducing=Z,
        num_inducing=len(Z),
        kernel=[copy.deepcopy(each.kernel) for each in old.layers],
        likelihood=copy.deepcopy(old.likelihood),
        output="regression",
        jitter=layer.jitter,
        seed=estimator._seed,
    )
    start_at_smaller(new, old)
    for variance in (new.likelihood.variance, new.output_layer.noise_variance):
        variance.assign(np.maximum(variance, _LEAST_NOISE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        fit(new, data, num_steps, seed=estimator._seed, progress=False)
    return new if anew is None or _log_density(new) >= _log_density(anew) else anew


# Beside busy processes several threads of OpenBLAS would spin until each has had its turn.
@threadpool_limits.wrap(limits=1, user_api="blas")
def _log_density(model: DeepWishartProcess) -> float:
    """That of each run, predicted from all others."""
    targets = model.output_layer.targets.numpy()
    return float(leave_one_out(model, _DRAWS).log_density(targets).mean())
