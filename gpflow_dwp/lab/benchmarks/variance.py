"""Variance of the gradient, by the estimator of the bound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpflow_dwp.lab.benchmarks.measurement import Figure, Measured, Report
from gpflow_dwp.lab.benchmarks.shapes import DatasetName, WishartName, posterior_arguments

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["VARIANTS", "benchmark_variance", "variance_figure"]

VARIANTS: dict[str, dict[str, bool]] = {
    "closed, landing": {},
    "closed": {"stick_the_landing": False},
    "sampled, landing": {"expected_log_ratio": False},
    "sampled": {"expected_log_ratio": False, "stick_the_landing": False},
    "closed, landing, sampled output": {"sampled_output": True},
}
"""Ways to estimate the bound without bias, as :func:`variant_sampler` takes them: the first is what
the builders take by default, the third what the papers do in hidden layers."""


def benchmark_variance(
    *,
    dataset: DatasetName = "yacht",
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
    from gpflow_dwp.data import load_uci
    from gpflow_dwp.lab.benchmarks.gradients import variant_sampler
    from gpflow_dwp.models import build_deep_wishart_process
    from gpflow_dwp.training import fit
    from gpflow_dwp.validation import check_integers

    check_integers(at_least=2, **{"--num-gradients": num_gradients})
    data = load_uci(dataset, split, folder=uci_folder).train
    arguments: dict[str, Any] = {"num_inducing": num_inducing, "output": "pseudo_targets"}
    arguments |= posterior_arguments(model)
    built = build_deep_wishart_process(data, depth, seed=seed, **arguments)
    samplers = {
        count: {name: variant_sampler(built, data, count, **v) for name, v in VARIANTS.items()}
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


def variance_figure(name: str, gradients: npt.NDArray[np.float64]) -> Figure:
    """The trace of the covariance of rows, and its standard error."""
    num = len(gradients)
    squares = ((gradients - gradients.mean(axis=0)) ** 2).sum(axis=1) * num / (num - 1)
    return Figure(name, float(squares.mean()), float(squares.std(ddof=1) / num**0.5))
