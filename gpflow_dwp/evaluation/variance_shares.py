"""What each part of a sum of functions has of the variance of all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.kernels import Linear, Sum

from gpflow_dwp.base import Array
from gpflow_dwp.kernels.draws import SumDraws
from gpflow_dwp.kernels.values import is_of_one_input, parts_of
from gpflow_dwp.layers.rows_posterior import RowsOfKernels
from gpflow_dwp.models import DeepKernelProcess

__all__ = ["VarianceShares", "variance_shares"]


class VarianceShares(NamedTuple):
    """What each part of a sum of functions has of the variance of all, which sum to one.

    The axis of Q outputs may be left out, as in the runs.

    :param single: Of what is a function of each input alone, [D, Q].
    :param joint: Of the function of all inputs, [Q].
    """

    single: Array
    joint: Array


def variance_shares(model: DeepKernelProcess, X: Array) -> VarianceShares | None:
    """Share the variance of a sum of functions out among its parts, in closed form.

    The posterior mean of a single layer whose kernel is a sum is a sum of functions, each from its
    own part of the kernel, in the mean over draws of that, if there are some; where nearest rows
    add to it, it is what inducing points tell alone. Part i has Cov(fᵢ, f) / Var(f) of its variance
    over given inputs (Li et al., "Global sensitivity analysis for systems with independent and/or
    correlated inputs", 2010),
    which is negative where others make up for it. Under a warp f is what is warped.

    :param X: Inputs that the variance is over, [N, D] in the model's units.
    :return: None where the model has hidden layers, or no kernel that is a sum.
    """
    kernels = getattr(model.output_layer, "kernels", ())
    if model.hidden_layers or not any(isinstance(kernel, Sum) for kernel in kernels):
        return None
    posterior: Any = model.posterior(1, seed=0)
    Z, of_kernels = posterior.path.points.numpy(), []
    weights_of = _weights_of(posterior.path.output)
    if weights_of is None:
        return None
    for kernel, weights in zip(posterior.output.kernels, weights_of, strict=True):
        found = np.zeros((X.shape[1] + 1, weights.shape[-1], len(X)))
        for part in kernel.kernels if isinstance(kernel, SumDraws) else parts_of(kernel):
            if isinstance(getattr(part, "unit", part), Linear):
                slopes = np.mean(part.variance.numpy() * (Z.T @ weights), axis=0)
                found[:-1] += slopes[..., None] * X.T[:, None]
            else:
                columns: Any = part.active_dims
                values = np.mean(part(X, Z).numpy() @ weights, axis=0)
                found[int(columns[0]) if is_of_one_input(part) else -1] += values.T
        of_kernels.append(found)
    parts = np.concatenate(of_kernels, axis=1)
    parts -= parts.mean(axis=-1, keepdims=True)
    total = parts.sum(axis=0)
    shares = np.sum(parts * total, axis=-1) / np.maximum(np.sum(total**2, axis=-1), 1e-300)
    return VarianceShares(shares[:-1], shares[-1])


def _weights_of(told: Any) -> list[Array] | None:
    """Of kernel functions at the inducing points, in means of functions, [S, M, Q] by kernel."""
    if not isinstance(told, RowsOfKernels):
        return [part.weights.numpy() for part in told.parts]
    found = []
    for part in told.parts:
        if part.inducing is None or part.inducing.tril.shape[1] == 1:
            return None
        tril, mean = part.inducing.tril, part.inducing.mean
        found.append(tf.linalg.triangular_solve(tril, mean, adjoint=True).numpy())
    return found
