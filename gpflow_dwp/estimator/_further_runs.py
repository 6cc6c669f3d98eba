"""A fitted regressor that takes in further runs."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING

import numpy as np
from gpflow.likelihoods import Gaussian

from gpflow_dwp.base import Array
from gpflow_dwp.exceptions import CollapseWarning
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.models import DeepWishartProcess, build_deep_wishart_process
from gpflow_dwp.models.deepening import start_at_smaller
from gpflow_dwp.selection.gaussian_process import fit_gaussian_process
from gpflow_dwp.training import fit

if TYPE_CHECKING:
    from gpflow_dwp.estimator._base import DeepWishartEstimator

__all__ = ["model_with_runs"]

# Where the noise of a deep model starts again: new runs may be a surprise.
_LEAST_NOISE = 1e-4
_MOST_ITERATIONS = 50
_MOST_INDUCING = 100


def model_with_runs(
    estimator: DeepWishartEstimator, X: Array, Y: Array, num_steps: int
) -> DeepWishartProcess:
    """Build the model of an estimator for further runs as well, and train it from where it is.

    :param X: Standardised inputs of the new runs, [B, D].
    :param Y: Standardised outputs, [B, Q].
    :raises ValueError: If its output layer is no regression.
    """
    old = estimator.model_
    layer = old.output_layer
    if not isinstance(layer, RegressionGPLayer):
        raise ValueError("tell needs a model whose output layer is a regression on its rows.")
    data = np.concatenate([layer.inputs, X]), np.concatenate([layer.targets, Y])
    most = estimator.num_inducing
    if most == "auto":
        most = _MOST_INDUCING if old.hidden_layers else len(data[0])
    points = np.asarray(old.inducing_variable.Z)
    Z = np.concatenate([points, X[: max(0, most - len(points))]])
    new = build_deep_wishart_process(
        data,
        len(old.layers),
        width=old.hidden_layers[0].df if old.hidden_layers else None,
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
    layer, noise = new.output_layer, new.likelihood.variance
    if not new.hidden_layers and type(new.likelihood) is Gaussian and noise.shape.rank == 0:
        fit_gaussian_process(
            data,
            layer.kernel,
            new.likelihood,
            jitter=layer.jitter,
            max_iterations=_MOST_ITERATIONS,
        )
        layer.noise_variance.assign(noise)
        return new
    for variance in (noise, layer.noise_variance):
        variance.assign(np.maximum(variance, _LEAST_NOISE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        fit(new, data, num_steps, seed=estimator._seed, progress=False)
    return new
