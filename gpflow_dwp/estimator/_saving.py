"""Estimators in a file, as a whole: arguments, models, units and rows; nothing is pickled.

The file is a zip archive of a description (JSON), of arrays, and of models as
:func:`gpflow_dwp.models.model_to_bytes` describes them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gpflow.functions import MeanFunction
from gpflow.kernels import Kernel

from gpflow_dwp import layers
from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.data.columns import Columns
from gpflow_dwp.data.encoding import ColumnEncoder
from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.files import pack, unpack, write_whole
from gpflow_dwp.models import DeepWishartProcess, model_from_bytes, model_to_bytes
from gpflow_dwp.models.plain_data import Arrays, Builder, to_config
from gpflow_dwp.selection.candidates import Candidate, Trial
from gpflow_dwp.selection.scores import LeaveOneOut
from gpflow_dwp.training import TrainingHistory

if TYPE_CHECKING:
    from typing_extensions import Self

_DESCRIPTION = "estimator.json"
_FORMAT = {"format": "gpflow_dwp.estimator", "format_version": 1}

_KINDS = Candidate, ColumnEncoder, Columns, LeaveOneOut, Standardiser, TrainingHistory, Trial
_RECORDS: dict[str, Any] = {each.__name__: each for each in _KINDS}
_LAYERS: list[type] = [getattr(layers, name) for name in layers.__all__]


class SavedWhole:
    """What can be written to a file, as a whole, and read again.

    :ivar columns_: Of the frame that it was fitted to; None without categories or whole numbers.
    """

    columns_: Columns | None = None
    _noise_std: Array | None = None
    _held_out: tuple[Array, Array] | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file, as a whole; nothing is pickled.

        A file that is there already is replaced in one step, when the new one is on the disk.

        :param path: The file.
        :raises SavedModelError: If a part of it cannot be described; nothing has been written.
        """
        classes = _classes()
        files: dict[str, bytes] = {}
        arrays: Arrays = {}

        def described(value: Any) -> Any:
            """Plain data of a value; models and arrays are put in their places, by new names."""
            if isinstance(value, DeepWishartProcess):
                name = f"model {len(files)}.zip"
                files[name] = model_to_bytes(value)
                return {"model": name}
            if isinstance(value, np.ndarray):
                name = f"array {len(arrays)}"
                are_objects = value.dtype.kind == "O"  # labels, or names
                arrays[name] = np.array(value.tolist()) if are_objects else value
                if arrays[name].dtype.kind not in "biufU":
                    raise SavedModelError(f"{value!r:.80} cannot be described as plain data")
                return {"array": name, "are_objects": are_objects}
            if type(value) in (*_KINDS, *classes.values()):
                fields = value._asdict() if hasattr(value, "_asdict") else vars(value)
                parts = {}
                for name, each in fields.items():
                    try:
                        parts[name] = described(each)
                    except SavedModelError as error:
                        raise SavedModelError(f"{name}: {error}") from error
                return {"class": type(value).__name__, "fields": parts}
            if isinstance(value, Mapping):
                return {"mapping": [[*value], [described(each) for each in value.values()]]}
            if isinstance(value, list | tuple):
                items = [described(each) for each in value]
                return {"tuple": items} if isinstance(value, tuple) else items
            if isinstance(value, type) and issubclass(value, layers.GramLayer):
                return {"layer": value.__name__}
            is_part = isinstance(value, Kernel | MeanFunction)
            return {"part": to_config(value)} if is_part else to_config(value)

        try:
            description = _FORMAT | {"estimator": described(self)}
        except SavedModelError as error:
            raise SavedModelError(f"The estimator cannot be saved: {error}") from error
        write_whole(Path(path), pack(_DESCRIPTION, description, arrays, files))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, custom_classes: Sequence[type] = ()) -> Self:
        """Build the estimator that :meth:`save` wrote.

        As for :func:`gpflow_dwp.load_model` the file may be a stranger's: nothing of it is
        executed. What one version of the package has written later ones read.

        :param path: The file.
        :param custom_classes: Classes of your own that its kernels and layers are made of.
        :return: An estimator with the same arguments and attributes: its predictions are identical.
        :raises SavedModelError: If the file is missing, foreign or damaged, was written by another
            format, holds an estimator of another class, or names classes that are not known.
        """
        classes = _classes()
        named = {each.__name__: each for each in (*_LAYERS, *custom_classes)}

        def built(described: Any) -> Any:
            if isinstance(described, list):
                return [built(each) for each in described]
            if not isinstance(described, dict):
                return described
            if "model" in described:  # once each
                content = files.pop(described["model"])
                return model_from_bytes(content, custom_classes=custom_classes)
            if "part" in described:
                return builder(described["part"])
            if "layer" in described:
                return named[described["layer"]]
            if "array" in described:
                array = arrays[described["array"]]
                return array.astype(object) if described["are_objects"] else array
            if "mapping" in described:
                keys, values = described["mapping"]
                return dict(zip(keys, built(values), strict=True))
            if "tuple" in described:
                return tuple(built(described["tuple"]))
            name = described["class"]
            fields = {each: built(value) for each, value in described["fields"].items()}
            if name == "Candidate" and "loo" in fields:  # as earlier versions called it
                return Trial(**fields)
            if name in _RECORDS:
                return _RECORDS[name](**fields)
            estimator: Any = object.__new__(classes[name])
            vars(estimator).update(fields)
            return estimator

        try:
            description, arrays, files = unpack(Path(path).read_bytes(), _DESCRIPTION, _FORMAT)
            builder = Builder(custom_classes, arrays)
            estimator = built(description["estimator"])
        except OSError as error:
            raise SavedModelError(f"{path} cannot be read: {error}") from error
        except Exception as error:  # of a dozen kinds, as the damage falls
            raise SavedModelError(f"{path} is no saved estimator, or damaged: {error}") from error
        if not isinstance(estimator, cls):
            name = type(estimator).__name__
            raise SavedModelError(f"{path} must hold a {cls.__name__}, got {name}.")
        return estimator


def _classes() -> dict[str, type]:
    kinds: list[type] = [SavedWhole]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return {kind.__name__: kind for kind in kinds}
