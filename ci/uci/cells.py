"""One cell of the papers' tables: a model of one data set, depth and split, trained and scored."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as fields_of
from itertools import product
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
from gpflow.base import RegressionData
from uci.scores import prediction_scores, whole_data_bound
from uci.splits import SETS, load_uci

from gpflow_dwp.latent_variable_deep_gp import build_latent_variable_deep_gp
from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network
from gpflow_dwp.models import (
    VariationalModel,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
)
from gpflow_dwp.models.architecture import Architecture
from gpflow_dwp.training import PROTOCOLS, TrainingHistory, TrainingProgress, fit

BUILDERS: dict[str, tuple[Callable[..., VariationalModel], dict[str, Any]]] = {
    "DGP": (build_deep_gaussian_process, {}),
    "DIWP": (build_deep_inverse_wishart_process, {}),
    **{name: (build_deep_wishart_process, {"posterior": name}) for name in ("GW", "A", "AB")},
    "VMG": (build_matrix_gaussian_network, {}),
    **{
        name: (build_latent_variable_deep_gp, {"architecture": name})
        for name in ("GP", "GP-GP", "GP-GP-GP", "LV-GP", "LV-GP-GP", "LV-GP-GP-GP", "GP-LV-GP")
    },
}
"""The deep GP, the deep inverse Wishart process, deep Wishart processes by their posterior, the
matrix-Gaussian network, and deep GPs with latent variables (LV) by their layers, bottom first."""

RECIPE = 8
"""Of what a cell does not say: it grows with defaults, starting values and gradients of the code.
Since 6 the papers' protocol samples log ratios and starts q at 0.018, since 7 the lengthscales of
inputs at √ν₀, since 8 precisions of networks have their best posterior."""

# What Louizos and Welling (2016, section 4.1) use instead of 10 pseudo-data pairs and 50 units.
_OPTIONS_OF_VMG: dict[str, dict[str, Any]] = {
    "yacht": {"num_pseudo_data": 5},
    "protein": {"num_pseudo_data": 20, "width": 100},
}


@dataclass(frozen=True)
class Cell:
    """Everything that decides the result of one run.

    :param depth: Number of GP layers of the equivalent deep GP, or of weight matrices for VMG.
    :param batch_size: Rows of a minibatch; None for all rows at every step.
    :param num_samples: Number of draws in each training step, S.
    :param num_prediction_samples: S in predictions.
    :param kl_annealing_steps: When the weight of the log ratios reaches 1; None for the protocol's.
    :param protocol: One of :func:`gpflow_dwp.fit`, or "cde" or "cde-fast": conditional density
        estimation (Salimbeni et al., 2019) by natural gradients where the model allows it, or by
        "fast" training and fewer steps.
    :param options: Further arguments of the model's builder.
    :param num_importance_samples: K in training.
    :param recipe: See :data:`RECIPE`.
    """

    dataset: str
    depth: int
    model: str
    split: int
    num_steps: int = 20_000
    batch_size: int | None = None
    num_inducing: int = 100
    num_samples: int = 10
    num_prediction_samples: int = 100
    dtype: str = "float64"
    seed: int = 0
    kl_annealing_steps: int | None = None
    protocol: str = "papers"
    options: Mapping[str, Any] | None = None
    num_importance_samples: int = 1
    recipe: int = RECIPE

    @property
    def key(self) -> str:
        """A file's name, which no other cell has."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def estimates_densities(self) -> bool:
        """Whether the protocol is one of conditional density estimation."""
        return self.protocol in ("cde", "cde-fast")

    @property
    def training_protocol(self) -> str:
        """That of :func:`gpflow_dwp.fit`."""
        is_latent = BUILDERS[self.model][0] is build_latent_variable_deep_gp
        return {"cde": "natural" if is_latent else "fast", "cde-fast": "fast"}.get(
            self.protocol, self.protocol
        )

    def build(self, data: RegressionData, target_scale: float = 1.0) -> VariationalModel:
        """Build the model, untrained.

        :param data: Standardised training inputs [N, D] and targets [N, 1].
        :param target_scale: Standard deviation of the targets in raw units, for the prior of VMG.
        """
        builder, arguments = BUILDERS[self.model]
        accepted = {*inspect.signature(builder).parameters}
        if "fields" in accepted:
            accepted |= {field.name for field in fields_of(Architecture)}
        own = {
            "depth": self.depth,
            "num_inducing": self.num_inducing,
            "target_scale": target_scale,
            "output": "pseudo_targets",  # as in the papers, whatever suits the data
            "protocol": "papers" if self.protocol == "papers" else "fast",
        }
        if "architecture" in arguments:
            del own["depth"]
        own = {name: value for name, value in own.items() if name in accepted}
        own |= {**arguments, **(self.options or {})}
        return builder(data, num_samples=self.num_samples, seed=self.seed, **own)


def make_cells(
    datasets: Sequence[str],
    depths: Sequence[int],
    models: Sequence[str],
    splits: Sequence[int],
    *,
    protocol: str = "papers",
    options: Mapping[str, Any] | None = None,
    uci_folder: str | Path | None = None,
    **fields: Any,
) -> list[Cell]:
    """Make every combination, in the order of data set, depth, split and model.

    The defaults are the papers' protocol (Ober and Aitchison, 2021, appendix F; Ober, Anson, Milsom
    and Aitchison, 2023, section 6 and appendix B); for VMG "vmg" and the numbers of pseudo-data and
    units of Louizos and Welling (2016, section 4.1). "cde" is that of Salimbeni et al. (2019,
    appendix A). Splits that a set does not have are left out. Data are read once, so that what is
    wrong with them is known before anything is trained.

    :param fields: Other fields of :class:`Cell`; None for those of the protocol.
    """
    cells: dict[str, Cell] = {}
    for dataset, depth, split, model in product(datasets, depths, splits, models):
        if dataset in SETS and split >= SETS[dataset][1]:
            continue
        X, Y = load_uci(dataset, split, folder=uci_folder).train
        if model not in BUILDERS:
            raise ValueError(f"models must be among {', '.join(BUILDERS)}, got {model}.")
        own = "vmg" if model == "VMG" and protocol == "papers" else protocol
        layers = BUILDERS[model][1].get("architecture", "").split("-").count("GP")
        of_vmg = _OPTIONS_OF_VMG.get(dataset, {}) if model == "VMG" else {}
        cell = Cell(
            dataset,
            layers or depth,
            model,
            split,
            protocol=own,
            options={**of_vmg, **(options or {})} or None,
        )
        training = PROTOCOLS["natural" if cell.estimates_densities else cell.training_protocol]
        asked = {
            "num_steps": {"vmg": 60_000, "networks": 60_000, "cde": 100_000}.get(own, 20_000),
            "num_inducing": 128 if cell.estimates_densities else 100,
            "num_samples": PROTOCOLS[cell.training_protocol].num_samples,
            "num_prediction_samples": 2_000 if cell.estimates_densities else 100,
            "num_importance_samples": 5 if own == "cde" else 1,
            "batch_size": training.batch_size(len(X)),
        }
        cell = replace(cell, **asked | {n: v for n, v in fields.items() if v is not None})
        if "LV-" not in model:  # several are of no use
            cell = replace(cell, num_importance_samples=1)
        if cell.batch_size is not None and cell.batch_size >= len(X):
            cell = replace(cell, batch_size=None)
        if options and split == splits[0]:
            cell.build((X[:20], Y[:20]))  # where it costs little to learn of a mistake
        cells[cell.key] = cell
    return list(cells.values())


def run_cell(
    cell: Cell, checkpoint_directory: str | None = None, uci_folder: str | None = None
) -> dict[str, Any]:
    """Train the model of a cell, and score it.

    :param checkpoint_directory: Where training leaves its state, and goes on from.
    :return: The bound in nats per training row, in standardised units; test scores, see
        :func:`~uci.scores.prediction_scores`; times in seconds; and the ``trace`` of training: some
        50 triples of step, seconds and mean bound.
    """
    gpflow.config.set_default_float(np.dtype(cell.dtype).type)
    data = load_uci(cell.dataset, cell.split, folder=uci_folder)
    model = cell.build(data.train, float(data.targets.scale[0]))
    watch = _Watch()
    history = fit(
        model,
        data.train,
        cell.num_steps,
        batch_size=cell.batch_size or len(data.train[0]),
        protocol=cell.training_protocol,  # type: ignore[arg-type]
        kl_annealing_steps=cell.kl_annealing_steps,
        num_importance_samples=cell.num_importance_samples,
        seed=cell.seed,
        callbacks=[watch],
        callback_interval=max(1, min(20, cell.num_steps // 4)),
        progress=False,
        checkpoint_directory=checkpoint_directory,
    )
    if history.num_steps < cell.num_steps:
        raise KeyboardInterrupt(history.stop_reason)
    elbo, error = whole_data_bound(
        model, data.train, num_importance_samples=cell.num_importance_samples, seed=cell.seed
    )
    scores = prediction_scores(
        model,
        data.inputs.transform(data.X_test),
        data.Y_test,
        data.targets,
        num_samples=cell.num_prediction_samples,
        marginals=cell.estimates_densities,
        seed=cell.seed,
    )
    seconds = watch.seconds_per_step(history)
    return {
        "elbo": elbo,
        "elbo_standard_error": error,
        **scores,
        "seconds_per_step": seconds,
        "seconds_per_epoch": seconds * len(data.train[0]) / (cell.batch_size or len(data.train[0])),
        "training_seconds": history.seconds,
        "trace": watch.trace[:: max(1, len(watch.trace) // 50)],
    }


class _Watch:
    """A callback that keeps steps, seconds and bounds per row."""

    def __init__(self) -> None:
        self.trace: list[tuple[int, float, float]] = []

    def __call__(self, progress: TrainingProgress) -> None:
        bound = progress.elbo / progress.model.num_data
        self.trace.append((progress.step, progress.seconds, bound))

    def seconds_per_step(self, history: TrainingHistory) -> float:
        """Median over the intervals between calls: without tracing, or a pause of the machine."""
        if len(self.trace) < 2:
            return history.seconds / history.num_steps
        steps, times, _ = np.array(self.trace).T
        return float(np.median(np.diff(times) / np.diff(steps)))
