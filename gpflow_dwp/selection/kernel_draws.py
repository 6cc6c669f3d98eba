"""Draws of the kernels of a single layer, which its predictions average over."""

from __future__ import annotations

import dataclasses

import numpy as np
from gpflow import default_float

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.gaussian_process import Evidence
from gpflow_dwp.gaussian_process.covariances import CLOSED_FORMS
from gpflow_dwp.gaussian_process.kernel_posterior import draw_kernel_values
from gpflow_dwp.kernels.draws import num_values
from gpflow_dwp.kernels.values import parts_of, values_of
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods.named import is_noise_free
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.leave_one_out import leave_one_out
from gpflow_dwp.selection.outputs import of_output
from gpflow_dwp.selection.trainer import fewer_inducing_inputs

__all__ = ["draw_kernel_of"]

_NUM_DRAWS = 20
# Of all kernels' covariances under one draw.
_MOST_ENTRIES = 1_000_000


def draw_kernel_of(
    model: DeepWishartProcess, weights: Array | None, steps: Array, seed: int
) -> tuple[bool, str]:
    """Give a single layer draws of its kernels, if it can have some and they change predictions.

    :param model: At the mode of what it is fitted by.
    :param weights: How often each row counts there, [N]; None for once.
    :param steps: To which each column was recorded, [P].
    :param seed: Of the draws.
    :return: Whether it has some now, and a sentence that says so; none where it cannot.
    """
    layer, likelihood = model.output_layer, model.likelihood
    if not isinstance(layer, RegressionGPLayer):
        return False, ""
    (X, Y), kernels = (part.numpy() for part in layer.rows), layer.kernels
    are_own = len(kernels) > 1
    if not (
        (are_own or Y.shape[1] == 1 or is_noise_free(likelihood))
        and len(X) <= policy.ROWS_FOR_CHOICE
        and len(X) ** 2 * len(kernels) <= _MOST_ENTRIES
        and not (model.hidden_layers or layer.num_neighbours)
        and fewer_inducing_inputs(model, X) is None
        and num_values(layer.kernel)
        and all(type(part) in CLOSED_FORMS for each in kernels for part in parts_of(each))
        and default_float() == np.float64
    ):
        return False, ""
    weights = np.ones(len(X)) if weights is None else weights
    drawn = []
    for index, kernel in enumerate(kernels):
        outputs = slice(index, index + 1) if are_own else slice(None)
        rows = (weights > 0.0) & ~np.isnan(Y[:, outputs]).any(axis=1)
        evidence = Evidence(
            X[rows],
            Y[rows, outputs],
            weights[rows],
            steps[outputs],
            values_of(kernel),
            of_output(likelihood, index) if are_own else likelihood,
            None if layer.precisions is None else layer.precisions.numpy()[rows],
            layer.jitter,
        )
        drawn.append(draw_kernel_values(evidence, _NUM_DRAWS, seed + index))
    before, own = _of_functions(model), "each kernel's" if are_own else "the kernel's"
    scale = np.sqrt(before.variance())
    for draws in zip(*drawn, strict=True):
        layer.set_kernel_draws(np.hstack(draws))
        after = _of_functions(model)
        change = ((after.mean() - before.mean()) / scale) ** 2
        change += np.log(np.sqrt(after.variance()) / scale) ** 2
        if np.sqrt(change.mean(0).max()) < policy.LEVEL:
            layer.set_kernel_draws(None)
            return False, f"Other values of {own[:-2]} would make no difference."
    return True, f"Predictions average over {_NUM_DRAWS} draws of {own} values."


def _of_functions(model: DeepWishartProcess) -> PredictiveDistribution:
    """What is predicted of each row from all others, before it is unwarped."""
    return dataclasses.replace(leave_one_out(model), warp=None)
