"""Variance of the gradient, by the estimator of the bound."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpflow_dwp.lab.benchmarks.measurement import Figure, Measured, Report
from gpflow_dwp.lab.benchmarks.shapes import WishartName, posterior_arguments

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import tensorflow as tf

    from gpflow_dwp.lab.benchmarks.gradients import Draws
    from gpflow_dwp.models import DeepWishartProcess

__all__ = ["VARIANTS", "Variant", "benchmark_variance", "variance_figure", "variant_sampler"]


class Variant(NamedTuple):
    """A way to estimate the bound of a deep Wishart process without bias.

    No data have latent variables here, so that all are of one
    :class:`~gpflow_dwp.objectives.Estimator`; what differs is options of the layers.

    :param expected_log_ratio: See :class:`~gpflow_dwp.layers.WishartLayer`.
    :param stick_the_landing: See :class:`~gpflow_dwp.layers.WishartLayer`.
    :param sampled_output: Whether the output layer's u and f are drawn, and its log ratio with
        them, where they could be integrated out.
    """

    expected_log_ratio: bool
    stick_the_landing: bool
    sampled_output: bool = False


VARIANTS = {
    "closed, landing": Variant(True, True),
    "closed": Variant(True, False),
    "sampled, landing": Variant(False, True),
    "sampled": Variant(False, False),
    "closed, landing, sampled output": Variant(True, True, sampled_output=True),
}
"""The first is what the builders take by default, the third what the papers do in hidden layers."""


def benchmark_variance(
    *,
    dataset: str = "yacht",
    split: int = 0,
    model: WishartName = "AB",
    depth: int = 2,
    seed: int = 0,
    uci_folder: Path | None = None,
    num_samples: tuple[int, ...] = (1, 2, 5, 10),
    num_inducing: int = 100,
    num_steps: int = 2_000,
    num_gradients: int = 100,
    report: Report,
) -> dict[str, Measured]:
    """Measure the noise of gradients, by the estimator of the bound.

    Before and after training by the defaults: the sum of variances over each group of parameters,
    in nats², with its standard error. Draws of hidden layers are the same for all estimators.

    :param num_samples: Draws that estimate the bound.
    :param num_inducing: Inducing points.
    :param num_steps: Steps of training between the two measurements.
    :param num_gradients: Gradients that each variance is estimated from.
    """
    from gpflow_dwp.data import UCI_DATASETS, load_uci
    from gpflow_dwp.models import build_deep_wishart_process
    from gpflow_dwp.training import fit
    from gpflow_dwp.validation import check_choice, check_integers

    check_choice(UCI_DATASETS, **{"--dataset": dataset})
    check_integers(at_least=2, **{"--num-gradients": num_gradients})
    data = load_uci(dataset, split, folder=uci_folder).train
    arguments: dict[str, Any] = {"num_inducing": num_inducing, "output": "pseudo_targets"}
    arguments |= posterior_arguments(model)
    built = build_deep_wishart_process(data, depth, seed=seed, **arguments)
    samplers = {
        count: {name: variant_sampler(built, data, v, count) for name, v in VARIANTS.items()}
        for count in num_samples
    }
    result: dict[str, Measured] = {}
    for step in (0, num_steps):
        if step:
            fit(built, data, num_steps, seed=seed, progress=False)
        for count, by_name in samplers.items():
            found = {}
            for name, sample in by_name.items():
                found[name] = sample(num_gradients, seed).gradients
                report(f"step {step}, {name}, S = {count}")
            title = (
                f"{model} of depth {depth} on {dataset}, split {split}, step {step}, S = {count}"
            )
            figures = [
                variance_figure(f"{group}: {name}", found[name][group])
                for group in next(iter(found.values()))
                for name in VARIANTS
            ]
            result[title] = Measured(figures, {"step": step, "num_samples": count})
    return result


def variant_sampler(
    model: DeepWishartProcess, data: tuple[Any, Any], variant: Variant, num_samples: int
) -> Callable[[int, int], Draws]:
    """Return what draws gradients of a model's bound, in nats: see :func:`gradient_sampler`.

    :param model: Its present parameters are used at every call; it is left as it is.
    :param data: X [N, D] and Y [N, P]: all rows.
    :param variant: How the bound is estimated.
    :param num_samples: S.
    :raises ValueError: If the output layer is to be sampled and has no pseudo-targets.
    """
    from gpflow.utilities import to_default_float

    from gpflow_dwp.lab.benchmarks._sampled_output import SampledOutputLayer
    from gpflow_dwp.lab.benchmarks.gradients import gradient_sampler
    from gpflow_dwp.models import DeepWishartProcess
    from gpflow_dwp.random import fold_in, split_seed

    hidden: list[Any] = [copy.copy(layer) for layer in model.hidden_layers]  # parameters are shared
    for layer in hidden:
        layer.expected_log_ratio = variant.expected_log_ratio
        layer.stick_the_landing = variant.stick_the_landing
    output = SampledOutputLayer(model.output_layer) if variant.sampled_output else None
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


def variance_figure(name: str, gradients: npt.NDArray[np.float64]) -> Figure:
    """The trace of the covariance of rows, and its standard error."""
    num = len(gradients)
    squares = ((gradients - gradients.mean(axis=0)) ** 2).sum(axis=1) * num / (num - 1)
    return Figure(name, float(squares.mean()), float(squares.std(ddof=1) / num**0.5))
