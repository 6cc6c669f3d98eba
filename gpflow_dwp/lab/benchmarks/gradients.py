"""Gradients of a deep Wishart process's bound, by what the parameters are."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.utilities import parameter_dict, to_default_float

from gpflow_dwp.lab.benchmarks._sampled_output import SampledOutputLayer
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.random import as_seed, fold_in, split_seed

__all__ = [
    "Draws",
    "bound_per_datum",
    "copy_parameters",
    "gradient_sampler",
    "gradients_by_group",
    "parameter_groups",
    "variant_sampler",
]


class Draws(NamedTuple):
    """G estimates of a bound, and their gradients with respect to unconstrained parameters.

    :param bounds: [G].
    :param gradients: For each group, [G, size of the group].
    """

    bounds: npt.NDArray[np.float64]
    gradients: dict[str, npt.NDArray[np.float64]]


Sampler = Callable[[int, int], Draws]
"""What draws a number of estimates by a seed, with the parameters as they are then."""


def gradient_sampler(model: DeepWishartProcess, bound: Callable[[tf.Tensor], tf.Tensor]) -> Sampler:
    """Return what draws gradients.

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


def variant_sampler(
    model: DeepWishartProcess,
    data: tuple[Any, Any],
    num_samples: int,
    *,
    expected_log_ratio: bool = True,
    stick_the_landing: bool = True,
    sampled_output: bool = False,
) -> Sampler:
    """Return what draws gradients of a model's bound, in nats, as it is estimated in other ways.

    No data have latent variables here, so that all are of one
    :class:`~gpflow_dwp.objectives.Estimator`; what differs is options of the layers.

    :param model: Its present parameters are used at every call; it is left as it is.
    :param data: X [N, D] and Y [N, P]: all rows.
    :param num_samples: Number of joint draws, S.
    :param expected_log_ratio: See :class:`~gpflow_dwp.layers.WishartLayer`.
    :param stick_the_landing: See :class:`~gpflow_dwp.layers.WishartLayer`.
    :param sampled_output: Whether the output layer's u and f are drawn, and its log ratio with
        them, where they could be integrated out.
    :raises ValueError: If the output layer is to be sampled and has no pseudo-targets.
    """
    hidden: list[Any] = [copy.copy(layer) for layer in model.hidden_layers]  # parameters are shared
    for layer in hidden:
        layer.expected_log_ratio = expected_log_ratio
        layer.stick_the_landing = stick_the_landing
    output = SampledOutputLayer(model.output_layer) if sampled_output else None
    estimated = DeepWishartProcess(
        [*hidden, output or model.output_layer],
        model.likelihood,
        model.inducing_variable,
        model.num_data,
        num_samples,
    )
    X, Y = (to_default_float(part) for part in data)

    def bound(seed: tf.Tensor) -> tf.Tensor:
        if output is not None:
            output.seeds = tuple(split_seed(fold_in(seed, -1), 2))
        return estimated.elbo((X, Y), seed=seed)

    return gradient_sampler(model, bound)


def bound_per_datum(
    model: DeepWishartProcess, data: tuple[Any, Any]
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Return the bound of a model per datum, of a seed, in the default float."""
    X, Y = (to_default_float(part) for part in data)
    return lambda seed: model.elbo((X, Y), seed=seed) / model.num_data


def copy_parameters(source: DeepWishartProcess, target: DeepWishartProcess, nudge: float) -> None:
    """Copy unconstrained parameters, each times one plus Gaussian noise of size ``nudge``."""
    rng = np.random.default_rng(0)
    pairs = zip(source.trainable_variables, target.trainable_variables, strict=True)
    for given, variable in pairs:
        factor = 1.0 + nudge * rng.standard_normal(given.shape)
        variable.assign(tf.cast(given, variable.dtype) * factor.astype(variable.dtype.name))


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
