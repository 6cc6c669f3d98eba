"""What a finished run says of itself (``run.json``), by which its model predicts tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpflow_dwp.cli.backend import load_tensorflow
from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.parameters import FileOptions
from gpflow_dwp.cli.run_directory import DESCRIPTION, FORMAT, MODEL, Run
from gpflow_dwp.data import ColumnEncoder, Standardiser
from gpflow_dwp.data.array_checks import Task
from gpflow_dwp.data.reading import Format, TableFile, read_file
from gpflow_dwp.data.tables import read_target
from gpflow_dwp.exceptions import TableError
from gpflow_dwp.files import seal, unseal, write_whole

if TYPE_CHECKING:
    from gpflow_dwp.base import Array
    from gpflow_dwp.evaluation import RawUnits
    from gpflow_dwp.models import VariationalModel

__all__ = ["TrainedRun", "describe_model"]

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
    :param model: What its model is: see :func:`describe_model`.
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
    model: dict[str, Any] = field(default_factory=dict)

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
            "model": self.model,
        }

    def write(self, directory: Path) -> None:
        """Write ``run.json``."""
        write_whole(directory / DESCRIPTION, json.dumps(seal(self.to_dict()), indent=1))

    @classmethod
    def read(cls, run: Path) -> TrainedRun:
        """Read ``run.json``.

        :param run: A directory.
        :raises UsageError: If the directory is not a run, or its ``run.json`` is damaged.
        """
        path = Run(run).folder / DESCRIPTION
        if not path.is_file():
            raise UsageError(f"{run} is not a run directory: it has no {DESCRIPTION}")
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
                fields.get("model", {}),
            )
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise UsageError(f"{path} is damaged: {error}") from error

    def read_rows(self, path: Path, options: FileOptions) -> tuple[TableFile, Array]:
        """Return a table, and its inputs in raw units, [N, D].

        :raises TableError: If the table cannot be used.
        """
        missing = (*self.options.get("missing", ()), *options.missing)
        form = Format(options.separator, options.decimal, options.encoding, missing)
        file = read_file(path, form)
        if not len(file.frame):
            raise TableError(f"{file.path}: no data rows below the header")
        X = self.encoder.transform(file.frame, where=path)
        self.inputs.check_near(X, names=self.encoder.feature_names, where=path)
        return file, X

    def read_target(self, file: TableFile) -> Array:
        """Return the target of a table's rows, in raw units or as class indices, [N, 1].

        :raises TableError: If a target is missing, or cannot be used.
        """
        Y = read_target(file.frame, self.target_name, self.classes, file.path)
        if self.target is not None:
            self.target.check_near(Y, names=(self.target_name,), where=file.path)
        return Y

    def load(self, run: Path) -> RawUnits:
        """Load the run's model, from the table's units to the target's.

        :raises SavedModelError: If it cannot be read.
        """
        load_tensorflow("TensorFlow is loading")
        from gpflow_dwp.evaluation import RawUnits
        from gpflow_dwp.models import load_model

        return RawUnits(load_model(Run(run).folder / MODEL), self.inputs, self.target)


def describe_model(model: VariationalModel) -> dict[str, Any]:
    """Return what a model is, in plain values."""
    from gpflow_dwp.models import model_summary

    layers = []
    for layer in model.layers:
        kernel = getattr(layer, "kernel", None)
        of = "" if kernel is None else f" ({type(kernel).__name__})"
        layers.append(f"{type(layer).__name__}{of}")
    parts = [part for part in model_summary(model).parts if part.name.startswith("layers[")]
    sizes = [int(variable.shape.num_elements()) for variable in model.trainable_variables]
    return {
        "class": type(model).__name__,
        "layers": layers,
        "nats": [None if part.kl is None else round(part.kl, 2) for part in parts],
        "collapsed_layers": [part.name for part in parts if part.collapsed],
        "likelihood": type(model.likelihood).__name__,
        "inputs": model.num_inputs,
        "trainable_parameters": sum(sizes),
        "dtype": model.trainable_variables[0].dtype.name if sizes else None,
    }
