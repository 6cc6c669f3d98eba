"""What a finished run says of itself (``run.json``), by which its model predicts tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.run_directory import DESCRIPTION, FORMAT, MODEL, Run
from gpflow_dwp.data import ColumnEncoder, Standardiser
from gpflow_dwp.data.cells import Cells, read_cells
from gpflow_dwp.data.table import Task
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.files import seal, unseal, write_whole
from gpflow_dwp.models import load_model

__all__ = ["TrainedRun", "read_model"]

_FORMAT_VERSION = 2


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """What predictions need besides the model.

    :param encoder: What makes numbers of a table's columns.
    :param target_name: The column that is predicted.
    :param task: Regression or classification.
    :param classes: For classification, the label of each class.
    :param inputs: Standardiser of the inputs.
    :param target: Standardiser of the target; None for classification.
    :param options: The options of the command that made the run.
    :param versions: Versions of the packages that it ran with.
    :raises ValueError: If these do not fit together.
    """

    encoder: ColumnEncoder
    target_name: str
    task: Task
    classes: tuple[str, ...] | None
    inputs: Standardiser
    target: Standardiser | None
    options: dict[str, Any]
    versions: dict[str, str]

    def __post_init__(self) -> None:
        if len(self.inputs.mean) != len(self.encoder.feature_names):
            raise ValueError("inputs and columns have different lengths")
        if self.target is not None and len(self.target.mean) != 1:
            raise ValueError("target must hold one mean and one scale")
        labelled = self.task == "classification"
        if labelled != (self.classes is not None) or labelled == (self.target is not None):
            raise ValueError("task, classes and target do not fit together")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        columns = self.encoder.to_dict()
        return {
            "format": FORMAT,
            "format_version": _FORMAT_VERSION,
            "feature_names": columns.pop("columns"),
            **columns,
            "target_name": self.target_name,
            "task": self.task,
            "classes": self.classes,
            "inputs": self.inputs.to_dict(),
            "target": None if self.target is None else self.target.to_dict(),
            "options": self.options,
            "versions": self.versions,
        }

    def write(self, directory: Path) -> None:
        """Write ``run.json``."""
        write_whole(directory / DESCRIPTION, json.dumps(seal(self.to_dict()), indent=1))

    @classmethod
    def read(cls, directory: Path) -> TrainedRun:
        """Read ``run.json``.

        :raises UsageError: If the directory is not a run, or its ``run.json`` is damaged.
        """
        path = directory / DESCRIPTION
        if not path.is_file():
            raise UsageError(f"{directory} is not a run directory: it has no {DESCRIPTION}")
        try:
            sealed = json.loads(path.read_bytes())
            if (sealed["format"], sealed["format_version"]) != (FORMAT, _FORMAT_VERSION):
                raise UsageError(f"{path} was not written by this version of gpflow-dwp")
            fields = unseal(sealed)
            classes, target = fields["classes"], fields["target"]
            return cls(
                ColumnEncoder.from_dict({"columns": fields["feature_names"], **fields}),
                fields["target_name"],
                fields["task"],
                None if classes is None else tuple(classes),
                Standardiser.from_dict(fields["inputs"]),
                None if target is None else Standardiser.from_dict(target),
                fields["options"],
                fields["versions"],
            )
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise UsageError(f"{path} is damaged: {error}") from error

    def read_rows(self, path: Path) -> tuple[Cells, Array]:
        """Return a table's cells, and its inputs in raw units, [N, D].

        :raises TableError: If the table cannot be used.
        """
        cells = read_cells(path)
        cells.check_has(self.encoder.columns, "feature")
        if not len(cells):
            raise TableError(f"{cells.path}: no data rows below the header")
        X, names = self.encoder.transform(cells), self.encoder.feature_names
        self.inputs.check_near(X, names=names, path=cells.path, place=cells.place)
        return cells, X

    def read_target(self, cells: Cells) -> Array:
        """Return the target of a table's rows, in raw units or as class indices, [N, 1].

        :raises TableError: If a target is missing, or cannot be used.
        """
        name = self.target_name
        cells.check_has([name], "target")
        if self.target is not None:
            Y = cells.numbers(name)[:, None]
            self.target.check_near(Y, names=(name,), path=cells.path, place=cells.place)
            return Y
        cells.check_complete(name)
        classes = self.classes or ()
        labels = cells.names(name, classes)
        for row, label in enumerate(labels):
            if label not in classes:
                raise TableError(
                    f"{cells.path}: column {name!r} holds {label!r} in {cells.place(row)}, which "
                    f"training did not see; the classes are {', '.join(classes)}"
                )
        return np.array([[float(classes.index(label))] for label in labels])


def read_model(directory: Path) -> tuple[TrainedRun, RawUnits]:
    """Read what a run says of itself, and its model, from the table's units to the target's.

    :raises UsageError: If the directory is not a run, or its ``run.json`` is damaged.
    :raises SavedModelError: If the model cannot be read.
    """
    folder = Run(directory).folder
    run = TrainedRun.read(folder)
    return run, RawUnits(load_model(folder / MODEL), run.inputs, run.target)
