"""The cells of a study: every combination of its data sets, depths, splits and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from gpflow.base import RegressionData

from gpflow_dwp.data import load_uci
from gpflow_dwp.lab.study._models import MODELS
from gpflow_dwp.lab.study.cell import STUDY_PROTOCOLS, Cell, StudyProtocol
from gpflow_dwp.training import PROTOCOLS
from gpflow_dwp.validation import check_choice, check_integers

__all__ = ["make_cells"]

# What Louizos and Welling (2016, section 4.1) use instead of 10 pseudo-data pairs and 50 units.
_OPTIONS_OF_VMG: dict[str, dict[str, Any]] = {
    "yacht": {"num_pseudo_data": 5},
    "protein": {"num_pseudo_data": 20, "width": 100},
}


def make_cells(
    datasets: Sequence[str],
    depths: Sequence[int],
    models: Sequence[str],
    splits: Sequence[int],
    *,
    num_steps: int | None = None,
    batch_size: int | None = None,
    num_inducing: int | None = None,
    num_samples: int | None = None,
    num_prediction_samples: int | None = None,
    dtype: Literal["float64", "float32"] = "float64",
    seed: int = 0,
    kl_annealing_steps: int | None = None,
    protocol: StudyProtocol = "papers",
    options: Mapping[str, Any] | None = None,
    num_importance_samples: int = 1,
    uci_folder: str | Path | None = None,
) -> list[Cell]:
    """Make every combination, in the order of data set, depth, split and model.

    The defaults are the papers' protocol (Ober and Aitchison, 2021, section 6; Ober, Anson, Milsom
    and Aitchison, 2023, section 5); for VMG "vmg" and the numbers of pseudo-data and units of
    Louizos and Welling (2016, section 4.1); or with "cde" that of Salimbeni, Dutordoir, Hensman and
    Deisenroth (2019, appendix A), who take 100,000 steps. Every split is read once, so that what is
    wrong with the data is known before anything is trained.

    :param datasets: Names of UCI data sets.
    :param depths: Numbers of layers. A model whose name says its number has one cell, not several.
    :param models: Names in :data:`STUDY_MODELS`.
    :param splits: Numbers of splits.
    :param num_steps: Gradient steps; None for 20,000, and for "vmg" 60,000.
    :param batch_size: Rows of a minibatch; None for the protocol's, for "cde" that of "natural".
    :param num_inducing: M; None for 100, for "cde" 128.
    :param num_samples: S in training; None for the number of the protocol of training.
    :param num_prediction_samples: S in predictions; None for 100, for "cde" 2,000.
    :param dtype: "float64" or "float32".
    :param seed: For starting values, minibatches and draws.
    :param kl_annealing_steps: See :class:`Cell`.
    :param protocol: See :class:`Cell`.
    :param options: Further arguments of the models' builders.
    :param num_importance_samples: K in training; other models than those with latent variables
        take 1 in any case.
    :param uci_folder: See :func:`gpflow_dwp.data.load_uci`.
    :raises ValueError: If a sequence is empty or holds something twice, a name is unknown, a split
        is out of range, a number is not a positive integer, or a model cannot be built with the
        options.
    :raises OSError: If the data cannot be read.
    """
    options = options or {}
    for name, values in (
        ("datasets", datasets),
        ("depths", depths),
        ("models", models),
        ("splits", splits),
    ):
        if not values or len(set(values)) < len(values):
            raise ValueError(f"{name} must hold each of at least one value once, got {values}.")
    for model in models:
        check_choice(MODELS, model=model)
    check_choice(STUDY_PROTOCOLS, protocol=protocol)
    check_integers(num_importance_samples=num_importance_samples)
    numbers = {
        "num_steps": num_steps,
        "batch_size": batch_size,
        "num_inducing": num_inducing,
        "num_samples": num_samples,
        "num_prediction_samples": num_prediction_samples,
        "kl_annealing_steps": kl_annealing_steps,
    }
    asked: dict[str, Any] = {name: number for name, number in numbers.items() if number is not None}

    def cell(dataset: str, depth: int, model: str, split: int) -> Cell:
        own = "vmg" if model == "VMG" and protocol == "papers" else protocol
        all_options = {**(_OPTIONS_OF_VMG.get(dataset, {}) if own == "vmg" else {}), **options}
        plain = Cell(
            dataset,
            MODELS[model].own_depth or depth,
            model,
            split,
            dtype=dtype,
            seed=seed,
            protocol=own,
            options=tuple(sorted(all_options.items())),
        )
        samples = num_importance_samples if plain.takes_importance_samples else 1
        return replace(
            plain, num_importance_samples=samples, **{**_numbers_of_protocol(plain), **asked}
        )

    cells = list(
        dict.fromkeys(
            cell(dataset, depth, model, split)
            for dataset in datasets
            for depth in depths
            for split in splits
            for model in models
        )
    )
    loaded = {
        (dataset, split): load_uci(dataset, split, folder=uci_folder).train
        for dataset in datasets
        for split in splits
    }
    if options:
        for example in {(cell.dataset, cell.depth, cell.model): cell for cell in cells}.values():
            _try_to_build(example, loaded[example.dataset, example.split])
    return [
        replace(cell, batch_size=_batch_size(cell, len(loaded[cell.dataset, cell.split][0])))
        for cell in cells
    ]


def _numbers_of_protocol(cell: Cell) -> dict[str, Any]:
    """What is taken where nothing else is asked for."""
    return {
        "num_steps": 60_000 if cell.protocol == "vmg" else 20_000,
        "num_inducing": 128 if cell.estimates_densities else 100,
        "num_samples": PROTOCOLS[cell.training_protocol].num_samples,
        "num_prediction_samples": 2_000 if cell.estimates_densities else 100,
    }


def _try_to_build(cell: Cell, data: RegressionData) -> None:
    """Build the model for a few rows, where it costs little to learn of a mistake."""
    X, Y = data
    try:
        cell.build((X[:20], Y[:20]))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"options: model {cell.model} cannot be built with them: {error}"
        ) from error


def _batch_size(cell: Cell, num_rows: int) -> int | None:
    """Return the batch size that is meant: None for a full batch, whatever was asked for."""
    batch_size = cell.batch_size
    if batch_size is None:
        name = "natural" if cell.estimates_densities else cell.training_protocol
        batch_size = PROTOCOLS[name].batch_size(num_rows)
    if batch_size is not None and batch_size >= num_rows:
        return None
    return batch_size
