"""What rounding changes in a bound and its gradients, at one state and with the same draws."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpflow_dwp.lab.benchmarks.measurement import Figure, Measured, Report
from gpflow_dwp.lab.benchmarks.shapes import (
    DatasetName,
    DtypeName,
    WishartName,
    posterior_arguments,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from gpflow_dwp.lab.benchmarks.gradients import Draws

__all__ = ["benchmark_precision", "precision_figures"]

_AT_MOST = 0.05
_NUDGE = 1e-12  # of a parameter's size: more than float64 rounds, less than anything means


def benchmark_precision(
    *,
    dataset: DatasetName = "yacht",
    split: int = 0,
    model: WishartName = "A",
    depth: int = 5,
    seed: int = 0,
    uci_folder: Path | None = None,
    output: Literal["pseudo_targets", "regression"] | None = None,
    dtype: DtypeName = "float32",
    num_steps: int = 2_000,
    num_draws: int = 50,
    report: Report,
) -> dict[str, Measured]:
    """Compare float32 with float64 at one state.

    A model is trained by the defaults; where it ends, bound and gradients are evaluated in both,
    with the same parameters and draws, so that differences are of rounding alone. That float64
    keeps its digits is seen from all parameters off by 1e-12 of their size. Data are rounded to
    float32 first; beyond 2,000 rows, bounds and gradients are of the first 1,000. Differences of
    bounds, per datum, have standard errors; those of gradients are root mean squares over the size.

    :param output: Output layer's posterior (default: regression up to 2000 rows).
    :param num_steps: Steps of training before.
    :param num_draws: Estimates that are compared.
    """
    import numpy as np

    from gpflow_dwp.data import load_uci
    from gpflow_dwp.lab.benchmarks.gradients import (
        bound_per_datum,
        copy_parameters,
        gradient_sampler,
    )
    from gpflow_dwp.models import build_deep_wishart_process
    from gpflow_dwp.training import PROTOCOLS, fit
    from gpflow_dwp.validation import check_integers

    check_integers(at_least=2, **{"--num-draws": num_draws})
    rounded = load_uci(dataset, split, folder=uci_folder).train
    X, Y = (np.asarray(part, np.float32).astype(np.float64) for part in rounded)
    batch_size = PROTOCOLS["fast"].batch_size(len(X))
    arguments: dict[str, Any] = {"output": output, "seed": seed, **posterior_arguments(model)}
    models = {}
    for name in ("float32", "float64"):
        with _default_float(name):
            models[name] = build_deep_wishart_process((X, Y), depth, **arguments)
    trained = models[dtype]
    with _default_float(dtype):
        fit(trained, (X, Y), num_steps, batch_size=batch_size, seed=seed, progress=False)
    report(f"trained for {num_steps} steps in {dtype}")

    draws = []
    for name, nudge in (("float64", 0.0), ("float32", 0.0), ("float64", _NUDGE)):
        copy_parameters(trained, models[name], nudge)
        with _default_float(name):
            bound = bound_per_datum(models[name], (X[:batch_size], Y[:batch_size]))
            sample = gradient_sampler(models[name], bound)
            draws.append(sample(num_draws, seed))
        report(f"{num_draws} gradients in {name}" + f", parameters off by {nudge}" * bool(nudge))
    title = f"{model} of depth {depth} on {dataset}, split {split}"
    return {title: Measured(precision_figures(*draws), {})}


def precision_figures(exact: Draws, single: Draws, nudged: Draws) -> list[Figure]:
    """What is lost in float32, and by a change of all parameters.

    :param exact: Bounds and gradients in float64.
    :param single: In float32.
    :param nudged: In float64, with all parameters changed.
    """
    import numpy as np

    def mean(name: str, values: npt.NDArray[np.float64], at_most: float | None = None) -> Figure:
        error = values.std(ddof=1) / np.sqrt(len(values))
        return Figure(name, float(values.mean()), float(error), at_most)

    figures = [
        mean("bound per datum in float64", exact.bounds),
        mean("lost in float32", exact.bounds - single.bounds, _AT_MOST),
        mean(f"lost by a change of {_NUDGE}", exact.bounds - nudged.bounds),
    ]
    for other, what in ((single, "error"), (nudged, f"change by {_NUDGE}")):
        for group, gradients in exact.gradients.items():
            size = np.sqrt(np.mean(gradients**2))
            error = np.sqrt(np.mean((other.gradients[group] - gradients) ** 2))
            if size > 0.0:  # zero: the bound does not depend on them
                figures.append(Figure(f"gradient of {group}, {what} / size", float(error / size)))
    return figures


def _default_float(dtype: str) -> contextlib.AbstractContextManager[None]:
    import gpflow
    import numpy as np

    config = dataclasses.replace(gpflow.config.config(), float=np.dtype(dtype).type)
    return gpflow.config.as_context(config)
