"""Models in a file or as bytes: a description (JSON) and an archive of arrays; nothing is pickled.

The description is :mod:`gpflow_dwp.models.plain_data`, and of each parameter what that of a new
model would not have: whether it is trained, its prior, its transform, and which other one it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import Parameter, default_float
from gpflow.utilities import parameter_dict, set_trainable

from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.files import pack, unpack, write_whole
from gpflow_dwp.models.plain_data import Arrays, from_config, to_config
from gpflow_dwp.models.variational import VariationalModel
from gpflow_dwp.validation import check_instance

__all__ = ["load_model", "model_from_bytes", "model_to_bytes", "save_model", "warn_if_unsaved"]

_FILE, _DESCRIPTION = "model.zip", "model.json"
_FORMAT = {"format": "gpflow_dwp.model", "format_version": 4}
_UNKNOWN = "is not part of the model's configuration, or of the model as it would be built"
_CANNOT_BE_SAVED = (
    "The model cannot be saved: {}. Keep weights as gpflow.Parameter attributes of a class of your "
    "own, write checkpoints with tf.train.Checkpoint, or save predictions with tf.saved_model."
)


def save_model(model: VariationalModel, directory: str | os.PathLike[str]) -> None:
    """Write a model to a directory from which alone it can be built again.

    The directory gets ``model.zip``, with what :func:`model_to_bytes` returns. A model that is
    there already is replaced in one step, when the new one is on the disk.

    :param model: The model.
    :param directory: Where to; made if it is missing.
    :raises ValueError: If ``model`` is none of this package's.
    :raises SavedModelError: If a part of the model cannot be described; nothing has been written.
    """
    content = model_to_bytes(model)
    Path(directory).mkdir(parents=True, exist_ok=True)
    write_whole(Path(directory) / _FILE, content)


def load_model(
    directory: str | os.PathLike[str], *, custom_classes: Sequence[type] = ()
) -> VariationalModel:
    """Build the model that :func:`save_model` wrote to a directory.

    Sizes are checked against the arrays that are there before anything is built. Likelihoods get as
    many quadrature points as GPflow gives them.

    :param directory: The directory that was written.
    :param custom_classes: Classes of your own (kernels, likelihoods) that the model is made of.
    :return: A model with the same configuration, parameters, trainable flags and priors: its
        predictions are identical.
    :raises SavedModelError: If the directory is missing, foreign or damaged, was written by another
        format, names classes that are not known, or is not of GPflow's present default dtype.
    """
    path = Path(directory) / _FILE
    try:
        return model_from_bytes(path.read_bytes(), custom_classes=custom_classes)
    except (OSError, MemoryError, SavedModelError) as error:
        raise SavedModelError(f"{path} cannot be loaded: {error}") from error


def model_to_bytes(model: VariationalModel) -> bytes:
    """Return a model as an uncompressed zip archive; raises what :func:`save_model` does."""
    check_instance(VariationalModel, model=model)
    parameters = parameter_dict(model)
    arrays = {path: _variable(value).numpy() for path, value in parameters.items()}
    try:
        description = {
            **_FORMAT,
            "versions": {module.__name__: module.__version__ for module in (gpflow, tf, np)},
            "dtype": np.dtype(default_float()).name,
            "model": to_config(model, arrays),
            "parameters": _described(parameters),
        }
        classes = [type(module) for module in model.submodules]
        again = parameter_dict(_built(description, arrays, classes))
        for path, value in parameters.items():
            if path not in again or not np.array_equal(value, again[path], equal_nan=True):
                raise SavedModelError(f"{path} {_UNKNOWN}")
    except SavedModelError as error:
        raise SavedModelError(_CANNOT_BE_SAVED.format(str(error).rstrip("."))) from error
    return pack(_DESCRIPTION, description, arrays)


def model_from_bytes(content: bytes, *, custom_classes: Sequence[type] = ()) -> VariationalModel:
    """Build the model of :func:`model_to_bytes`; takes and raises what :func:`load_model` does."""
    check_instance(bytes, content=content)
    try:
        description, arrays, _ = unpack(content, _DESCRIPTION, _FORMAT)
        return _built(description, arrays, custom_classes)
    except SavedModelError:
        raise
    except Exception as error:  # whatever a constructor makes of what it does not expect
        raise SavedModelError(f"it is not a saved model, or damaged: {error}") from error


def warn_if_unsaved(model: VariationalModel) -> None:
    """Warn, before a model is trained, if a part of it cannot be saved."""
    try:
        to_config(model, {})
    except SavedModelError as error:
        warnings.warn(_CANNOT_BE_SAVED.format(str(error).rstrip(".")), stacklevel=3)


def _described(parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What parameters have besides their values, by their paths."""
    described: dict[str, dict[str, Any]] = {}
    first_path: dict[int, str] = {}
    for path, value in parameters.items():
        if (first := first_path.setdefault(id(value), path)) != path:
            described[path] = {"same_as": first}
        elif isinstance(value, Parameter):
            entry = described[path] = {"trainable": bool(value.trainable)}
            with contextlib.suppress(SavedModelError):  # a new model's may be the same
                entry["transform"] = to_config(value.transform)
            if value.prior is not None:
                entry |= {"prior": to_config(value.prior), "prior_on": value.prior_on.value}
    return described


def _built(
    description: Mapping[str, Any], arrays: Arrays, custom_classes: Sequence[type]
) -> VariationalModel:
    """Build a model, and give its parameters what is described of them and their values."""
    dtype, present = description["dtype"], np.dtype(default_float()).name
    if dtype != present:
        call = f"call gpflow.config.set_default_float(np.{dtype})"
        raise SavedModelError(f"it is in {dtype}, but GPflow's default is {present}: {call}")
    model: VariationalModel = from_config(description["model"], custom_classes, arrays)
    check_instance(VariationalModel, model=model)
    parameters, described = parameter_dict(model), description["parameters"]
    for path in (described.keys() - parameters.keys()) | (parameters.keys() - arrays.keys()):
        raise SavedModelError(f"{path} {_UNKNOWN}")
    for path, old in parameters.items():
        entry, array = described.get(path, {}), arrays[path]
        new = parameters[entry.get("same_as", path)]
        if "transform" in entry and to_config(new.transform) != entry["transform"]:
            transform = _bijector(entry["transform"], array, path, old.shape)
            new = Parameter(transform.forward(array), transform=transform)
        if new is not old:
            parameters[path] = new
            _replace(model, path, new)
        if isinstance(new, Parameter) and "same_as" not in entry:
            set_trainable(new, bool(entry.get("trainable", new.trainable)))
            if (prior := from_config(entry.get("prior"))) is not None:
                check_instance(tfp.distributions.Distribution, prior=prior)
            new.prior = prior
            new.prior_on = entry.get("prior_on", "constrained")
        variable = _variable(new)
        if not variable.shape.is_compatible_with(array.shape) or variable.dtype != array.dtype:
            needed = f"{variable.dtype.name} {list(variable.shape)}"
            raise SavedModelError(f"{path} must be {needed}, got {array.dtype} {list(array.shape)}")
        variable.assign(array)
    return model


def _bijector(
    config: Any, array: npt.NDArray[Any], path: str, expected: tf.TensorShape
) -> tfp.bijectors.Bijector:
    """Build a transform, if it makes of an array the shape that is expected: it may broadcast."""
    transform = from_config(config)
    check_instance(tfp.bijectors.Bijector, transform=transform)
    # Of another one, as bijectors keep what they have made.
    forward = tf.function(from_config(config).forward, autograph=False)
    found = forward.get_concrete_function(tf.TensorSpec(array.shape, array.dtype)).output_shapes
    if not found.is_compatible_with(expected):
        raise SavedModelError(f"{path} must have shape {expected}, got {found}")
    return transform


def _variable(value: Parameter | tf.Variable) -> tf.Variable:
    return value.unconstrained_variable if isinstance(value, Parameter) else value


def _replace(model: VariationalModel, path: str, value: Parameter) -> None:
    """Put a parameter into the place, such as .layers[0].kernel.variance, of one of the model."""
    owner: Any = model
    *steps, last = re.findall(r"\w+", path)
    for step in steps:
        owner = owner[int(step)] if step.isdigit() else getattr(owner, step)
    if last.isdigit():
        owner[int(last)] = value
    else:
        setattr(owner, last, value)
