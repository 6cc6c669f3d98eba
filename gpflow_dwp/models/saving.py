"""Models on disk or as bytes: a description (JSON) and the values of the parameters."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
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
from gpflow_dwp.models.configuration import from_config, to_config
from gpflow_dwp.models.variational import VariationalModel
from gpflow_dwp.validation import check_instance

__all__ = ["load_model", "model_from_bytes", "model_to_bytes", "save_model"]

_FORMAT = "gpflow_dwp.model"
_FORMAT_VERSION = 1
_DESCRIPTION = "model.json"
_WEIGHTS = "weights-*.npz"

# What GPflow's defaults put into the transforms of new parameters.
_SETTINGS = ("positive_bijector", "positive_minimum", "likelihood_positive_minimum")


def save_model(model: VariationalModel, directory: str | os.PathLike[str]) -> None:
    """Write a model to a directory from which alone it can be built again.

    The directory gets ``model.json`` (configuration, trainable flags, priors, versions) and a
    NumPy archive of the unconstrained values of all parameters. Nothing is pickled. A model that
    is in the directory already is replaced in one step, after the new one is complete.

    :param model: The model.
    :param directory: Where to; made if it is missing.
    :raises ValueError: If ``model`` is none of this package's.
    :raises SavedModelError: If a part of the model cannot be described, or the directory holds
        something that is not a saved model. Nothing has been written then.
    """
    directory = Path(directory)
    if directory.exists() and (not directory.is_dir() or _is_foreign(directory)):
        raise SavedModelError(f"{directory} exists and is not a saved model; choose another name.")
    description, weights = _describe(model)
    directory.mkdir(parents=True, exist_ok=True)
    # The description names its archive, so replacing the description switches models at once.
    _write(directory / description["weights"]["file"], weights)
    _write(directory / _DESCRIPTION, _to_json(description))
    for archive in directory.glob(_WEIGHTS):
        if archive.name != description["weights"]["file"]:
            archive.unlink()


def model_to_bytes(model: VariationalModel) -> bytes:
    """Return the files that :func:`save_model` would write, in one uncompressed zip archive.

    :param model: The model.
    :raises ValueError: If ``model`` is none of this package's.
    :raises SavedModelError: If a part of the model cannot be described.
    """
    description, weights = _describe(model)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        # Without the time of day, so that one model has one archive.
        for name, content in (
            (_DESCRIPTION, _to_json(description)),
            (description["weights"]["file"], weights),
        ):
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def _describe(model: VariationalModel) -> tuple[dict[str, Any], bytes]:
    """Return a model's description, and the archive of weights that it names."""
    check_instance(VariationalModel, model=model)
    parameters = parameter_dict(model)
    description: dict[str, Any] = {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "versions": {name: version(name) for name in ("gpflow", "tensorflow", "numpy")},
        "dtype": np.dtype(default_float()).name,
        "gpflow_config": {name: getattr(gpflow.config.config(), name) for name in _SETTINGS},
        "model": to_config(model),
        "trainable": {path: bool(value.trainable) for path, value in parameters.items()},
        "priors": {
            path: _prior_config(path, value)
            for path, value in parameters.items()
            if value.prior is not None
        },
    }
    _check_rebuilds(model, description)

    buffer = io.BytesIO()
    np.savez(
        buffer,
        **{path: value.unconstrained_variable.numpy() for path, value in parameters.items()},
    )
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    description["weights"] = {"file": f"weights-{digest[:16]}.npz", "sha256": digest}
    return description, buffer.getvalue()


def _to_json(description: dict[str, Any]) -> bytes:
    return json.dumps(description, indent=1).encode()


def load_model(
    directory: str | os.PathLike[str], *, custom_classes: Sequence[type] = ()
) -> VariationalModel:
    """Build the model that :func:`save_model` wrote to a directory.

    :param directory: Where from.
    :param custom_classes: Classes of your own (kernels, likelihoods) that the model is made of.
    :return: A model with the same configuration, parameters, trainable flags and priors: its
        predictions are identical.
    :raises SavedModelError: If the directory is missing, foreign or damaged, was written by a
        later format, or names classes that are not known.
    :raises ValueError: If the model's dtype is not GPflow's present default.
    """
    return _load(Path(directory), custom_classes)


def model_from_bytes(content: bytes, *, custom_classes: Sequence[type] = ()) -> VariationalModel:
    """Build the model that :func:`model_to_bytes` described.

    :param content: What it returned.
    :param custom_classes: As for :func:`load_model`, like all that is returned and raised.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.filename = "<bytes>"  # for messages
            return _load(zipfile.Path(archive), custom_classes)
    except zipfile.BadZipFile as error:
        raise SavedModelError(f"The bytes are not those of a saved model: {error}") from error


def _load(directory: Path | zipfile.Path, custom_classes: Sequence[type]) -> VariationalModel:
    description = _read_description(directory)
    dtype = description["dtype"]
    if dtype != np.dtype(default_float()).name:
        raise ValueError(
            f"The model in {directory} is in {dtype}, but GPflow's default is "
            f"{np.dtype(default_float()).name}: call gpflow.config.set_default_float(np.{dtype})."
        )
    try:
        model = _rebuild(description, custom_classes)
    except SavedModelError as error:
        raise SavedModelError(f"{directory / _DESCRIPTION}: {error}") from error
    weights = _read_weights(directory, description["weights"])
    parameters = parameter_dict(model)
    if set(weights) != set(parameters):
        raise SavedModelError(f"The weights in {directory} belong to another model.")
    for path, value in weights.items():
        variable = parameters[path].unconstrained_variable
        if not variable.shape.is_compatible_with(value.shape):
            raise SavedModelError(
                f"{directory}: {path} has shape {value.shape}, but the model needs "
                f"{tuple(variable.shape)}."
            )
        variable.assign(value)
    return model


def _rebuild(description: dict[str, Any], custom_classes: Sequence[type]) -> VariationalModel:
    try:
        settings = replace(gpflow.config.config(), **description["gpflow_config"])
        with gpflow.config.as_context(settings):
            model = from_config(description["model"], custom_classes)
        parameters = parameter_dict(model)
        for path, trainable in description["trainable"].items():
            set_trainable(parameters[path], trainable)
        for path, prior in description["priors"].items():
            parameters[path].prior = getattr(tfp.distributions, prior["distribution"])(
                **{
                    name: np.asarray(value, dtype=default_float())
                    for name, value in prior["parameters"].items()
                }
            )
            parameters[path].prior_on = prior["prior_on"]
    except SavedModelError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SavedModelError(f"The description of the model is damaged: {error!r}") from error
    return model


def _check_rebuilds(model: VariationalModel, description: dict[str, Any]) -> None:
    custom = {type(module) for module in model.submodules}
    bare = {**description, "trainable": {}, "priors": {}}
    rebuilt = parameter_dict(_rebuild(bare, list(custom)))
    originals = parameter_dict(model)
    first_path: dict[int, str] = {}
    for path, original in originals.items():
        other = first_path.setdefault(id(original), path)
        if other != path:
            raise SavedModelError(
                f"{other} and {path} are one parameter, which a new model would not share; it "
                "cannot be saved."
            )
        if path not in rebuilt:
            raise SavedModelError(f"{path} is not part of the model's configuration.")
        if _transform_name(original) != _transform_name(rebuilt[path]):
            raise SavedModelError(
                f"{path} has the transform {_transform_name(original)}, which a new model would "
                f"not have ({_transform_name(rebuilt[path])}); it cannot be saved."
            )
        if original.shape != rebuilt[path].shape:
            raise SavedModelError(f"{path} has shape {original.shape}, unlike its configuration.")
        if not np.array_equal(_constrained(rebuilt[path], original), original, equal_nan=True):
            raise SavedModelError(
                f"The transform of {path} has other settings (such as its lower bound) than a new "
                "model's would have; it cannot be saved."
            )
    extra = sorted(set(rebuilt) - set(originals))
    if extra:
        raise SavedModelError(f"A new model would have {', '.join(extra)}, which this one lacks.")


def _constrained(parameter: Parameter, other: Parameter) -> tf.Tensor:
    """Transform the unconstrained value of ``other`` as that of ``parameter`` would be."""
    unconstrained = tf.convert_to_tensor(other.unconstrained_variable)
    return unconstrained if parameter.transform is None else parameter.transform(unconstrained)


def _transform_name(parameter: Parameter) -> str:
    return "none" if parameter.transform is None else str(parameter.transform.name)


def _prior_config(path: str, parameter: Parameter) -> dict[str, Any]:
    prior: Any = parameter.prior
    name = type(prior).__name__
    values = {
        key: value
        for key, value in prior.parameters.items()
        if key not in ("name", "validate_args", "allow_nan_stats") and value is not None
    }
    try:
        numbers = {key: np.asarray(value, dtype=float).tolist() for key, value in values.items()}
    except (TypeError, ValueError):
        numbers = None
    if numbers is None or getattr(tfp.distributions, name, None) is not type(prior):
        raise SavedModelError(
            f"The prior of {path}, {prior.name}, is not one of TFP's with numbers as parameters; "
            "it cannot be saved."
        )
    return {
        "distribution": name,
        "parameters": numbers,
        "prior_on": parameter.prior_on.value,
    }


def _is_foreign(directory: Path) -> bool:
    if not (directory / _DESCRIPTION).exists():
        # Weights alone are what an interrupted first save leaves.
        return any(not path.match(_WEIGHTS) for path in directory.iterdir())
    try:
        description = json.loads((directory / _DESCRIPTION).read_text())
    except ValueError:
        return True
    return not isinstance(description, dict) or description.get("format") != _FORMAT


def _read_description(directory: Path | zipfile.Path) -> dict[str, Any]:
    path = directory / _DESCRIPTION
    if not path.is_file():
        raise SavedModelError(f"{directory} is not a saved model: it has no {_DESCRIPTION}.")
    try:
        description = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise SavedModelError(f"{path} is damaged: {error}") from error
    if not isinstance(description, dict) or description.get("format") != _FORMAT:
        raise SavedModelError(f"{path} does not describe a model of this package.")
    if description.get("format_version") != _FORMAT_VERSION:
        raise SavedModelError(
            f"{path} has format version {description.get('format_version')}; this version of the "
            f"package reads {_FORMAT_VERSION}."
        )
    missing = {"dtype", "gpflow_config", "model", "priors", "trainable", "weights"} - set(
        description
    )
    if missing:
        raise SavedModelError(f"{path} is damaged: it lacks {', '.join(sorted(missing))}.")
    return description


def _read_weights(
    directory: Path | zipfile.Path, entry: dict[str, str]
) -> dict[str, npt.NDArray[np.float64]]:
    if not isinstance(entry, dict):
        raise SavedModelError(f"{directory / _DESCRIPTION} is damaged: weights is {entry!r}.")
    path = directory / str(entry.get("file"))
    if not path.is_file():
        raise SavedModelError(f"{path} is missing.")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise SavedModelError(f"{path} is damaged: its checksum is not the one in {_DESCRIPTION}.")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _write(path: Path, content: bytes) -> None:
    """Write a file so that it is there as a whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
