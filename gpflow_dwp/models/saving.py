"""Models on disk or as bytes: a description (JSON) and the values of the parameters."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from gpflow_dwp.models._declared_sizes import check_declared_sizes
from gpflow_dwp.models._kept_settings import check_settings
from gpflow_dwp.models._saved_files import (
    DESCRIPTION,
    IN_BYTES,
    SavedParts,
    check_not_foreign,
    read_bytes,
    read_files,
    replace_files,
    to_files,
)
from gpflow_dwp.models.configuration import from_config, to_config
from gpflow_dwp.models.variational import VariationalModel
from gpflow_dwp.validation import check_instance, check_path

__all__ = ["load_model", "model_from_bytes", "model_to_bytes", "save_model"]

# What GPflow's defaults put into the transforms of new parameters.
_SETTINGS = ("positive_bijector", "positive_minimum", "likelihood_positive_minimum")


def save_model(model: VariationalModel, directory: str | os.PathLike[str]) -> None:
    """Write a model to a directory from which alone it can be built again.

    The directory gets ``model.json`` (configuration, trainable flags, priors, versions) and a
    NumPy archive of the unconstrained values of all parameters. Nothing is pickled. A model that
    is in the directory already is replaced in one step, after the new one is complete and on the
    disk; of several processes that save there, the last one wins.

    :param model: The model.
    :param directory: Where to; made if it is missing.
    :raises ValueError: If ``model`` is none of this package's, or ``directory`` is no path.
    :raises SavedModelError: If a part of the model cannot be described, or the directory holds
        something that is not a saved model. Nothing has been written then.
    """
    check_path(directory=directory)
    check_not_foreign(Path(directory))
    replace_files(Path(directory), _describe(model))


def model_to_bytes(model: VariationalModel) -> bytes:
    """Return the files that :func:`save_model` would write, in one uncompressed zip archive.

    :param model: The model.
    :raises ValueError: If ``model`` is none of this package's.
    :raises SavedModelError: If a part of the model cannot be described.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        # Without the time of day, so that one model has one archive.
        for name, content in _describe(model).items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def _describe(model: VariationalModel) -> dict[str, bytes]:
    check_instance(VariationalModel, model=model)
    parameters = parameter_dict(model)
    description: dict[str, Any] = {
        "versions": {module.__name__: module.__version__ for module in (gpflow, tf, np)},
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
    return to_files(description, buffer.getvalue())


def load_model(
    directory: str | os.PathLike[str], *, custom_classes: Sequence[type] = ()
) -> VariationalModel:
    """Build the model that :func:`save_model` wrote to a directory.

    No more is read, and no larger model is built, than what the weights that are there allow.

    :param directory: The directory that was written.
    :param custom_classes: Classes of your own (kernels, likelihoods) that the model is made of.
    :return: A model with the same configuration, parameters, trainable flags and priors: its
        predictions are identical.
    :raises SavedModelError: If the directory is missing, foreign or damaged, was written by
        another format, or names classes that are not known.
    :raises ValueError: If an argument is of another kind, or the model's dtype is not GPflow's
        present default.
    """
    check_path(directory=directory)
    return _build(Path(directory), read_files(Path(directory)), custom_classes)


def model_from_bytes(content: bytes, *, custom_classes: Sequence[type] = ()) -> VariationalModel:
    """Build the model that :func:`model_to_bytes` described.

    :param content: What :func:`model_to_bytes` returned.
    :param custom_classes: As for :func:`load_model`, like all that is returned and raised.
    """
    check_instance(bytes, content=content)
    return _build(IN_BYTES, read_bytes(content), custom_classes)


def _build(directory: Path, saved: SavedParts, custom_classes: Sequence[type]) -> VariationalModel:
    description, weights = saved
    dtype = description["dtype"]
    if dtype not in ("float16", "float32", "float64"):
        raise SavedModelError(
            f"{directory / DESCRIPTION}: dtype is {dtype!r:.80}, which no model has."
        )
    if not all(isinstance(cls, type) for cls in custom_classes):
        raise ValueError(f"custom_classes must hold classes, got {custom_classes!r}.")
    if dtype != np.dtype(default_float()).name:
        raise ValueError(
            f"The model in {directory} is in {dtype}, but GPflow's default is "
            f"{np.dtype(default_float()).name}: call gpflow.config.set_default_float(np.{dtype})."
        )
    try:
        check_declared_sizes(description["model"], weights)
        model = _rebuild(description, custom_classes)
        _assign(model, weights)
    except SavedModelError as error:
        raise SavedModelError(f"{directory / DESCRIPTION}: {error}") from error
    return model


def _assign(model: VariationalModel, weights: Mapping[str, npt.NDArray[Any]]) -> None:
    parameters = parameter_dict(model)
    if set(weights) != set(parameters):
        raise SavedModelError("its weights belong to another model.")
    for path, value in weights.items():
        variable = parameters[path].unconstrained_variable
        fits = variable.shape.is_compatible_with(value.shape)
        if not fits or variable.dtype != value.dtype:
            raise SavedModelError(
                f"{path} is {value.dtype} {list(value.shape)}, but the model needs "
                f"{variable.dtype.name} {list(variable.shape)}."
            )
        variable.assign(value)


def _rebuild(description: Mapping[str, Any], custom_classes: Sequence[type]) -> VariationalModel:
    try:
        settings = {name: description["gpflow_config"][name] for name in _SETTINGS}
        with gpflow.config.as_context(replace(gpflow.config.config(), **settings)):
            model = from_config(description["model"], custom_classes)
        check_instance(VariationalModel, model=model)
        parameters = parameter_dict(model)
        for path, trainable in description["trainable"].items():
            if not isinstance(trainable, bool):
                raise SavedModelError(f"trainable says {trainable!r:.80} of {path}.")
            set_trainable(parameters[path], trainable)
        for path, prior in description["priors"].items():
            _set_prior(parameters[path], prior)
    except SavedModelError:
        raise
    except Exception as error:  # whatever a constructor makes of what it does not expect
        raise SavedModelError(f"the description of the model is damaged: {error!r}") from error
    return model


def _set_prior(parameter: Parameter, described: Mapping[str, Any]) -> None:
    kind = getattr(tfp.distributions, described["distribution"])
    if not (isinstance(kind, type) and issubclass(kind, tfp.distributions.Distribution)):
        raise SavedModelError(f"there is no distribution {described['distribution']!r}.")
    dtype = default_float()
    parameter.prior = kind(
        **{name: np.asarray(value, dtype) for name, value in described["parameters"].items()}
    )
    parameter.prior_on = described["prior_on"]


def _check_rebuilds(model: VariationalModel, description: dict[str, Any]) -> None:
    custom = {type(module) for module in model.submodules}
    bare = {**description, "trainable": {}, "priors": {}}
    new_model = _rebuild(bare, list(custom))
    rebuilt = parameter_dict(new_model)
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
    check_settings(model, new_model)


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
