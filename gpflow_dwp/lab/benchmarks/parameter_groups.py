"""Gradients of a deep Wishart process, by what the parameters are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import tensorflow as tf

    from gpflow_dwp.models import DeepWishartProcess

__all__ = ["gradients_by_group", "parameter_groups"]


def parameter_groups(model: DeepWishartProcess) -> dict[int, str]:
    """Name a group for each trainable variable, by the variable's ``id``.

    Kernels, likelihood, inducing inputs, and of each layer: "bartlett" (α, β, μ, σ), "mixing" (A',
    B), "scale_mixture" (q, s, V), and the output's "pseudo_targets" and "precision_tril".
    """
    from gpflow.utilities import parameter_dict

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
