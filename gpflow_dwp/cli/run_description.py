"""What a run says of itself: ``run.json``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.run_directory import DESCRIPTION, FORMAT, MODEL, read_run
from gpflow_dwp.cli.units import standardise
from gpflow_dwp.data import Cells, ColumnEncoder, Standardiser, Task
from gpflow_dwp.files import seal, unseal, write_whole
from gpflow_dwp.models import VariationalModel, load_model

__all__ = ["RunDescription", "read_model"]

_FORMAT_VERSION = 2


@dataclass(frozen=True)
class RunDescription:
    """What predictions need besides the model.

    :param feature_names: The columns that the model takes, in its order.
    :param target_name: The column that it predicts.
    :param task: Regression or classification.
    :param classes: For classification, the label of each class.
    :param inputs: Standardiser of the inputs, as a dictionary.
    :param target: Standardiser of the target, as a dictionary; None for classification.
    :param options: The options of the command that made the run.
    :param versions: Versions of the packages that it ran with.
    :param categories: Of each categorical column, the categories.
    :param fill: What replaces a missing cell, by column.
    """

    feature_names: tuple[str, ...]
    target_name: str
    task: Task
    classes: tuple[str, ...] | None
    inputs: dict[str, list[float]]
    target: dict[str, list[float]] | None
    options: dict[str, Any]
    versions: dict[str, str]
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fill: dict[str, float | str] = field(default_factory=dict)

    @property
    def encoder(self) -> ColumnEncoder:
        """What makes numbers of a table's columns."""
        return ColumnEncoder(self.feature_names, self.categories, self.fill)

    def standardise_inputs(
        self, X: npt.NDArray[np.float64], cells: Cells
    ) -> npt.NDArray[np.float64]:
        """Bring raw inputs to the model's units.

        :param X: The inputs, [N, D].
        :param cells: The rows that they are of.
        :raises TableError: If a number is too far from those of training for double precision.
        """
        return standardise(
            Standardiser.from_dict(self.inputs),
            X,
            names=self.encoder.feature_names,
            path=cells.path,
            place=cells.place,
        )

    def standardise_target(
        self, Y: npt.NDArray[np.float64], cells: Cells
    ) -> npt.NDArray[np.float64]:
        """Bring a raw target to the model's units; class indices stay as they are.

        :param Y: The target, [N, 1].
        :param cells: The rows that it is of.
        :raises TableError: As :meth:`standardise_inputs` does.
        """
        if self.target is None:
            return Y
        return standardise(
            Standardiser.from_dict(self.target),
            Y,
            names=(self.target_name,),
            path=cells.path,
            place=cells.place,
        )

    def write(self, directory: Path) -> None:
        """Write ``run.json``."""
        fields = {"format": FORMAT, "format_version": _FORMAT_VERSION, **asdict(self)}
        write_whole(directory / DESCRIPTION, json.dumps(seal(fields), indent=1))

    @classmethod
    def read(cls, directory: Path) -> RunDescription:
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
            del fields["format"], fields["format_version"]
            for name in ("feature_names", "classes"):
                fields[name] = None if fields[name] is None else tuple(fields[name])
            categories = fields["categories"].items()
            fields["categories"] = {name: tuple(values) for name, values in categories}
            run = cls(**fields)
            run._check()
            return run
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise UsageError(f"{path} is damaged: {error}") from error

    def _check(self) -> None:
        if len(Standardiser.from_dict(self.inputs).mean) != len(self.encoder.feature_names):
            raise ValueError("inputs and columns have different lengths")
        if self.target is not None and len(Standardiser.from_dict(self.target).mean) != 1:
            raise ValueError("target must hold one mean and one scale")
        labelled = self.task == "classification"
        if labelled != (self.classes is not None) or labelled == (self.target is not None):
            raise ValueError("task, classes and target do not fit together")


def read_model(directory: Path) -> tuple[RunDescription, VariationalModel]:
    """Read what a run says of itself, and its model.

    :param directory: Of the run.
    :raises UsageError: If the directory is not a run, or its ``run.json`` is damaged.
    :raises SavedModelError: If the model cannot be read.
    """
    with read_run(directory) as folder:
        return RunDescription.read(folder), load_model(folder / MODEL)
