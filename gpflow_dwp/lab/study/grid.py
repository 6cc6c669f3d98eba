"""The cells of a study: every combination of its data sets, depths, splits and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from gpflow.base import RegressionData

from gpflow_dwp.data import load_uci
from gpflow_dwp.lab.study._models import STUDY_MODELS
from gpflow_dwp.lab.study.cell import Cell, StudyProtocol
from gpflow_dwp.lab.study.runnable import check_each_once, sorted_pairs
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
    protocol: StudyProtocol = "papers",
    options: Mapping[str, Any] | None = None,
    num_importance_samples: int = 1,
    uci_folder: str | Path | None = None,
    **fields: Any,
) -> list[Cell]:
    """Make every combination, in the order of data set, depth, split and model.

    The defaults are the papers' protocol (Ober and Aitchison, 2021, section 6; Ober, Anson, Milsom
    and Aitchison, 2023, section 5); for VMG "vmg" and the numbers of pseudo-data and units of
    Louizos and Welling (2016, section 4.1); or with "cde" that of Salimbeni, Dutordoir, Hensman and
    Deisenroth (2019, appendix A), who take 100,000 steps. Those are 20,000 steps, 60,000 for "vmg";
    M is 100, S in predictions 100, for "cde" 128 and 2,000; S in training and the batch size are
    those of the protocol of training, for "cde" the batch size of "natural". Every split is read
    once, so that what is wrong with the data is known before anything is trained.

    :param depths: Numbers of layers. A model whose name says its number has one cell, not several.
    :param models: Names in :data:`STUDY_MODELS`.
    :param protocol: See :class:`Cell`.
    :param num_importance_samples: K in training; other models than those with latent variables
        take 1 in any case.
    :param fields: Other fields of :class:`Cell`; None for those of the protocol.
    :raises ValueError: If a sequence is empty or holds something twice, a name is unknown, a split
        is out of range, a number cannot be used, or a model cannot be built with the options.
    :raises OSError: If the data cannot be read.
    """
    check_each_once(datasets=datasets, depths=depths, models=models, splits=splits)
    for model in models:
        check_choice(STUDY_MODELS, model=model)
    check_integers(num_importance_samples=num_importance_samples)
    fields = {name: value for name, value in fields.items() if value is not None}

    def cell(dataset: str, depth: int, split: int, model: str) -> Cell:
        own = "vmg" if model == "VMG" and protocol == "papers" else protocol
        all_options = {
            **(_OPTIONS_OF_VMG.get(dataset, {}) if own == "vmg" else {}),
            **(options or {}),
        }
        place = (dataset, STUDY_MODELS[model].own_depth or depth, model, split)
        plain = Cell(*place, protocol=own, options=sorted_pairs(all_options))
        samples = num_importance_samples if plain.takes_importance_samples else 1
        fields_of_all = {"num_importance_samples": samples, **_of_protocol(plain), **fields}
        return replace(plain, **fields_of_all)

    cells = list(dict.fromkeys(cell(*place) for place in product(datasets, depths, splits, models)))
    loaded = {
        place: load_uci(*place, folder=uci_folder).train for place in product(datasets, splits)
    }
    if options:
        for example in {(cell.dataset, cell.depth, cell.model): cell for cell in cells}.values():
            _try_to_build(example, loaded[example.dataset, example.split])
    return [
        replace(cell, batch_size=_batch_size(cell, len(loaded[cell.dataset, cell.split][0])))
        for cell in cells
    ]


def _of_protocol(cell: Cell) -> dict[str, Any]:
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
    return None if batch_size is None or batch_size >= num_rows else batch_size
