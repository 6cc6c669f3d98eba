"""Objects as plain data, from which they can be built again: models, layers, kernels, likelihoods.

An object's configuration is its class and the arguments of its constructor, read from the
attributes of the same names, as GPflow's classes keep them, or of those that a class attribute
``kept_as`` gives by argument, dotted where they are an attribute's. Arguments that are kept nowhere
and have a default, such as seeds of starting values, are left out, and so is a likelihood's
quadrature.
"""

from __future__ import annotations

import importlib
import inspect
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp.exceptions import SavedModelError

__all__ = ["Arrays", "from_config", "to_config"]

# Where classes and functions may come from, besides this package's rooms and what the user passes.
_TFP = {"tfp.bijectors": tfp.bijectors, "tfp.distributions": tfp.distributions}
_HOMES: dict[str, Any] = {
    **{
        f"gpflow.{name}": getattr(gpflow, name)
        for name in ("functions", "inducing_variables", "kernels", "likelihoods")
    },
    "gpflow.likelihoods.utils": gpflow.likelihoods.utils,
    "tf.math": tf.math,
    "tf.nn": tf.nn,
    **_TFP,
}

# Arguments of GPflow's constructors that are kept under another name. Classes of this package, and
# those of users, say so in ``kept_as``.
_KEPT_AS: dict[tuple[type, str], Callable[[Any], Any]] = {
    (gpflow.likelihoods.HeteroskedasticTFPConditional, "distribution_class"): lambda likelihood: (
        type(likelihood.conditional_distribution(tf.zeros([1, 2], gpflow.default_float())))
    ),
}

_OF_TFP = (tfp.bijectors.Bijector, tfp.distributions.Distribution)

Arrays = dict[str, npt.NDArray[Any]]

# What classes had in an earlier version, at what they always do now; what was not set is None.
_GONE = {"stick_the_landing": True}


def to_config(value: Any, arrays: Arrays | None = None) -> Any:
    """Describe an object as plain data that JSON can hold.

    :param value: A model, layer, kernel, likelihood, or anything that one is made of.
    :param arrays: Takes arrays, by names; None for a description that has them itself.
    :raises SavedModelError: If the object, or a part of it, cannot be described; the message
        names it.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, gpflow.Parameter | tf.Tensor | tf.Variable | np.ndarray):
        return {"array": _put(value, arrays)}
    if isinstance(value, list | tuple):
        return [to_config(item, arrays) for item in value]
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if callable(value) and (name := _name(value)):
        return {"name": name}
    if not isinstance(value, tf.Module):
        raise SavedModelError(f"{value!r} cannot be described as plain data")
    if isinstance(value, _OF_TFP):
        arguments = {
            key: to_config(part, arrays)
            for key, part in value.parameters.items()
            if part is not None and key not in ("name", "validate_args", "allow_nan_stats")
        }
        if not (name := _name(type(value))).startswith("tfp."):
            raise SavedModelError(f"{value.name} is not one of TFP's bijectors or distributions")
        return {"class": name, "arguments": arguments}
    return {"class": _class_name(type(value)), "arguments": _arguments(value, arrays)}


def from_config(
    config: Any, custom_classes: Sequence[type] = (), arrays: Arrays | None = None
) -> Any:
    """Build an object from what :func:`to_config` returned.

    :param config: The description.
    :param custom_classes: Classes other than GPflow's and this package's that it may name.
    :param arrays: Its arrays; None where it has them itself.
    :raises SavedModelError: If the description is damaged, or names an unknown class.
    """
    if isinstance(config, list):
        return [from_config(item, custom_classes, arrays) for item in config]
    if not isinstance(config, Mapping):
        return config
    if "array" in config:
        found = config["array"]
        array = np.array((arrays or {})[found] if isinstance(found, str) else found)
        if array.dtype.kind not in "biuf":
            raise SavedModelError("An array that does not hold numbers.")
        return array
    if "slice" in config:
        return slice(*config["slice"])
    if "name" in config:
        return _find(config["name"])
    if "class" not in config:
        raise SavedModelError(f"A description without a class: keys {', '.join(config)}.")
    cls = _find(config["class"], custom_classes)
    if not (isinstance(cls, type) and issubclass(cls, tf.Module)):
        raise SavedModelError(f"{config['class']} is no class of parts.")
    known = inspect.signature(cls).parameters
    arguments = {
        name: from_config(argument, custom_classes, arrays)
        for name, argument in config["arguments"].items()
        if name in known or argument not in (None, _GONE.get(name))
    }
    if issubclass(cls, _OF_TFP):
        arguments = {name: _of_default_type(part) for name, part in arguments.items()}
    try:
        return cls(**arguments)
    except (TypeError, ValueError) as error:
        raise SavedModelError(f"{config['class']} cannot be built: {error}") from error


def _put(value: Any, arrays: Arrays | None) -> Any:
    array = np.asarray(value)
    if arrays is None or array.ndim == 0:
        return array.tolist()
    for name, other in arrays.items():
        if other.dtype == array.dtype and np.array_equal(other, array):
            return name  # parameters without a transform, and data, are there already
    name = f"argument {len(arrays)}"
    arrays[name] = array
    return name


def _arguments(instance: Any, arrays: Arrays | None) -> dict[str, Any]:
    (_, *parameters) = inspect.signature(type(instance).__init__).parameters.values()
    required = {
        each.name: each.default is each.empty
        for each in parameters
        if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL) and each.name != "name"
    }
    has_more = any(each.kind is each.VAR_KEYWORD for each in parameters)
    if has_more and isinstance(instance, gpflow.kernels.Kernel):
        required["active_dims"] = True
    kept_as = getattr(instance, "kept_as", {})
    arguments = {}
    for name, is_required in required.items():
        getter = _KEPT_AS.get((type(instance), name))
        getter = getter or operator.attrgetter(kept_as.get(name, name))
        try:
            value = getter(instance)
        except AttributeError:
            if is_required:
                raise SavedModelError(
                    f"{type(instance).__name__} does not keep its constructor's argument {name!r} "
                    "as an attribute"
                ) from None
            continue
        try:
            arguments[name] = to_config(value, arrays)
        except SavedModelError as error:
            raise SavedModelError(f"{type(instance).__name__}.{name}: {error}") from error
    return arguments


def _of_default_type(value: Any) -> Any:
    # TFP would take numbers of Python for float32.
    are_real = isinstance(value, float) or getattr(value, "dtype", np.dtype(int)).kind == "f"
    return np.asarray(value, gpflow.default_float()) if are_real else value


def _known(name: str) -> Any:
    """What stands in one of the homes, or is exported by one of this package's rooms; or None."""
    home, _, last = name.rpartition(".")
    if not re.fullmatch(r"gpflow_dwp\.[a-z]\w*", home):
        return None if last.startswith("_") else vars(_HOMES.get(home, object)).get(last)
    try:
        room = importlib.import_module(home)
    except ImportError:
        return None
    return getattr(room, last) if last in getattr(room, "__all__", ()) else None


def _name(value: Any) -> str:
    """The full name by which a class or function is known; "" of others."""
    room = re.match(r"gpflow_dwp\.[a-z]\w*", getattr(value, "__module__", None) or "")
    homes = (*_HOMES, room[0]) if room else _HOMES
    names = (f"{home}.{getattr(value, '__name__', '')}" for home in homes)
    return next((name for name in names if _known(name) is value), "")


def _class_name(cls: type) -> str:
    return _name(cls) or f"custom.{cls.__qualname__}"


def _find(name: str, custom_classes: Sequence[type] = ()) -> Any:
    found = {_class_name(cls): cls for cls in custom_classes}.get(name) or _known(name)
    if found is None:
        raise SavedModelError(
            f"The name {name!r} is not known here; pass a class of yours in custom_classes."
        )
    return found
