"""What rounding changes in a bound and its gradients, at one state and with the same draws."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.data import UCI_DATASETS, load_uci
from gpflow_dwp.lab.benchmarks.measurement import Figure
from gpflow_dwp.lab.benchmarks.parameter_groups import gradients_by_group
from gpflow_dwp.lab.benchmarks.subjects import WISHART_MODELS, posterior_arguments
from gpflow_dwp.validation import check_choice, check_integers

if TYPE_CHECKING:
    from gpflow_dwp.models import DeepWishartProcess, OutputPosterior

__all__ = ["benchmark_precision"]

_AT_MOST = 0.05
_DTYPES = ("float32", "float64")
_NUDGE = 1e-12  # of a parameter's size: more than float64 rounds, less than anything means


def benchmark_precision(
    dataset: str = "yacht",
    depth: int = 5,
    model: str = "A",
    *,
    split: int = 0,
    output: OutputPosterior | None = None,
    dtype: str = "float32",
    num_steps: int = 2_000,
    num_draws: int = 50,
    seed: int = 0,
    uci_folder: str | Path | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Train a model, and evaluate bound and gradients where it ends, in float32 and in float64.

    Both have the same parameters and draws, so that differences are of rounding alone; two runs of
    training differ far more by what each rounding error leads to. That float64 itself keeps its
    digits is seen from a third evaluation, in float64 with all parameters off by 1e-12 of their
    size. The data are rounded to float32 first, because noise is a function of their digits. Beyond
    2,000 rows, bounds and gradients are of the first 1,000 rows, as training's are of as many.

    :param dataset: Name of a UCI data set.
    :param depth: Number of layers.
    :param model: One of :data:`WISHART_MODELS`.
    :param split: Of the data set.
    :param output: As :func:`~gpflow_dwp.models.build_deep_wishart_process` takes it.
    :param dtype: What the model is trained in, "float32" or "float64".
    :param num_steps: Steps of training, by the defaults of :func:`~gpflow_dwp.training.fit`.
    :param num_draws: How many estimates of the bound, with their gradients, are compared.
    :param seed: For the start, training and the draws.
    :param uci_folder: Where data sets are; None for :func:`~gpflow_dwp.data.load_uci`'s default.
    :param report: Called with a line of progress.
    :return: Under a title "figures", a list of :class:`Figure` as dictionaries: the bound per datum
        in float64 and what float32 and the 1e-12 take from it, in nats, each with its standard
        error; and for each group of parameters the root mean square of what gradients differ by,
        over that of float64's gradients, for both.
    :raises ValueError: If an argument cannot be used; nothing has been trained then.
    """
    check_choice(UCI_DATASETS, dataset=dataset)
    check_choice(WISHART_MODELS, model=model)
    check_choice(_DTYPES, dtype=dtype)
    check_integers(depth=depth, num_steps=num_steps)
    check_integers(at_least=2, num_draws=num_draws)
    from gpflow_dwp.models import build_deep_wishart_process
    from gpflow_dwp.training import PROTOCOLS, fit

    rounded = [
        np.asarray(part, np.float32).astype(np.float64)
        for part in load_uci(dataset, split, folder=uci_folder).train
    ]
    data = (rounded[0], rounded[1])
    batch_size = PROTOCOLS["fast"].batch_size(len(data[0]))
    models = {}
    for name in _DTYPES:
        with _default_float(name):
            models[name] = build_deep_wishart_process(
                data, depth, output=output, seed=seed, **posterior_arguments(model)
            )
    trained = models[dtype]
    with _default_float(dtype):
        fit(trained, data, num_steps, batch_size=batch_size, seed=seed, progress=False)
    report(f"trained for {num_steps} steps in {dtype}")

    rows = (data[0][:batch_size], data[1][:batch_size])
    bounds, gradients = {}, {}
    for name, nudge in (("float64", 0.0), ("float32", 0.0), ("float64", _NUDGE)):
        key = "nudged" if nudge else name
        _copy_parameters(trained, models[name], nudge)
        with _default_float(name):
            bounds[key], gradients[key] = _evaluate(models[name], rows, num_draws, seed)
        report(f"{num_draws} gradients in {name}" + f", parameters off by {nudge}" * bool(nudge))
    title = f"{model} of depth {depth} on {dataset}, split {split}"
    figures = [*_bound_figures(bounds), *_gradient_figures(gradients)]
    return {title: {"figures": [figure._asdict() for figure in figures]}}


def _default_float(dtype: str) -> contextlib.AbstractContextManager[None]:
    import gpflow

    config = dataclasses.replace(gpflow.config.config(), float=np.dtype(dtype).type)
    return gpflow.config.as_context(config)


def _copy_parameters(source: DeepWishartProcess, target: DeepWishartProcess, nudge: float) -> None:
    """Copy unconstrained parameters, each times one plus Gaussian noise of that size."""
    import tensorflow as tf

    rng = np.random.default_rng(0)
    pairs = zip(source.trainable_variables, target.trainable_variables, strict=True)
    for given, variable in pairs:
        factor = 1.0 + nudge * rng.standard_normal(given.shape)
        variable.assign(tf.cast(given, variable.dtype) * factor.astype(variable.dtype.name))


def _evaluate(
    model: DeepWishartProcess,
    data: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    num_draws: int,
    seed: int,
) -> tuple[npt.NDArray[np.float64], dict[str, npt.NDArray[np.float64]]]:
    """Bounds per datum, [G], and each group's gradients, [G, size of the group]."""
    import tensorflow as tf
    from gpflow.utilities import to_default_float

    from gpflow_dwp.random import as_seed, fold_in

    X, Y = (to_default_float(part) for part in data)

    @tf.function(autograph=False)
    def evaluate(seed: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            bound = model.elbo((X, Y), seed=seed) / model.num_data
        return bound, tape.gradient(
            bound, model.trainable_variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )

    bounds, gradients = zip(
        *(evaluate(fold_in(as_seed(seed), index)) for index in range(num_draws)), strict=True
    )
    return np.array(bounds, np.float64), gradients_by_group(model, gradients)


def _bound_figures(bounds: dict[str, npt.NDArray[np.float64]]) -> list[Figure]:
    exact = bounds["float64"]
    return [
        Figure("bound per datum in float64", *_mean(exact)),
        Figure("lost in float32", *_mean(exact - bounds["float32"]), _AT_MOST),
        Figure(f"lost by a change of {_NUDGE}", *_mean(exact - bounds["nudged"])),
    ]


def _mean(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _gradient_figures(gradients: dict[str, dict[str, npt.NDArray[np.float64]]]) -> list[Figure]:
    figures = []
    for key, what in (("float32", "error"), ("nudged", f"change by {_NUDGE}")):
        for group, exact in gradients["float64"].items():
            size = np.sqrt(np.mean(exact**2))
            error = np.sqrt(np.mean((gradients[key][group] - exact) ** 2))
            if size > 0.0:  # zero: the bound does not depend on them
                ratio = float(error / size)
                figures.append(Figure(f"gradient of {group}, {what} / size", ratio, 0.0))
    return figures
