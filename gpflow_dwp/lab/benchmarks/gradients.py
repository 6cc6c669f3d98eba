"""Gradients of a deep Wishart process's bound, by what the parameters are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.utilities import parameter_dict

from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.random import as_seed, fold_in

__all__ = ["Draws", "gradient_sampler", "gradients_by_group", "parameter_groups"]


class Draws(NamedTuple):
    """G estimates of a bound, and their gradients with respect to unconstrained parameters.

    :param bounds: [G].
    :param gradients: For each group, [G, size of the group].
    """

    bounds: npt.NDArray[np.float64]
    gradients: dict[str, npt.NDArray[np.float64]]


def gradient_sampler(
    model: DeepWishartProcess, bound: Callable[[tf.Tensor], tf.Tensor]
) -> Callable[[int, int], Draws]:
    """Return what draws a number of estimates by a seed, with the parameters as they are then.

    :param model: Whose parameters gradients are taken with respect to.
    :param bound: Of a stateless seed, [2]; differentiated in a compiled function.
    """
    variables = model.trainable_variables

    @tf.function(autograph=False)
    def evaluate(seed: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            value = bound(seed)
        zero = tf.UnconnectedGradients.ZERO
        return value, tape.gradient(value, variables, unconnected_gradients=zero)

    def draw(num_draws: int, seed: int) -> Draws:
        seeds = [fold_in(as_seed(seed), index) for index in range(num_draws)]
        bounds, gradients = zip(*map(evaluate, seeds), strict=True)
        return Draws(np.array(bounds, np.float64), gradients_by_group(model, gradients))

    return draw


def parameter_groups(model: DeepWishartProcess) -> dict[int, str]:
    """Name a group for each trainable variable, by the variable's ``id``.

    Kernels, likelihood, inducing inputs, and of each layer: "bartlett" (α, β, μ, σ), "mixing" (A',
    B), "scale_mixture" (q, s, V), and the output's "pseudo_targets" and "precision_tril".
    """
    groups = {}
    for path, parameter in parameter_dict(model).items():
        _, first, *names = re.split(r"[.\[\]]+", path)
        if first != "layers":
            group = first
        elif names[1] == "kernel":
            group = "kernels"
        elif names[1] == "bartlett_factor":
            mixes = names[2] in ("packed_row_mixing", "column_mixing_tril")
            group = f"layer {int(names[0]) + 1} {'mixing' if mixes else 'bartlett'}"
        else:
            group = f"layer {int(names[0]) + 1} {names[1]}"
        groups[id(parameter.unconstrained_variable)] = group
    return groups


def gradients_by_group(
    model: DeepWishartProcess, gradients: Sequence[Sequence[tf.Tensor]]
) -> dict[str, npt.NDArray[np.float64]]:
    """Arrange gradients by :func:`parameter_groups`.

    :param gradients: G gradients with respect to ``model.trainable_variables``.
    :return: For each group, in the order of the variables, [G, size of the group].
    """
    groups = parameter_groups(model)
    found: dict[str, list[npt.NDArray[np.float64]]] = {}
    for index, variable in enumerate(model.trainable_variables):
        stacked = [np.ravel(parts[index]).astype(np.float64) for parts in gradients]
        found.setdefault(groups[id(variable)], []).append(np.stack(stacked))
    return {group: np.concatenate(parts, axis=1) for group, parts in found.items()}
