"""Objects as plain data, from which they can be built again: models, layers, kernels, likelihoods.

An object's configuration is its class and the arguments of its constructor, read from the
attributes of the same names, as GPflow's classes keep them, or of those that a class attribute
``kept_as`` gives by argument, dotted where they are an attribute's. Arguments that are kept nowhere
and have a default, such as seeds of starting values, are left out. A likelihood's numbers of points
are there where they are others than GPflow's.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.validation import check_integers

__all__ = ["find_own", "from_config", "to_config"]

_GPFLOW: dict[str, Any] = {
    f"gpflow.{name}": getattr(gpflow, name)
    for name in ("functions", "inducing_variables", "kernels", "likelihoods")
}

_FUNCTIONS: dict[str, Callable[..., tf.Tensor]] = {
    "gpflow.likelihoods.utils.inv_probit": gpflow.likelihoods.utils.inv_probit,
    "tf.exp": tf.exp,
    "tf.math.sigmoid": tf.math.sigmoid,
    "tf.math.softplus": tf.math.softplus,
    "tf.math.square": tf.math.square,
}

# Arguments of GPflow's constructors that are kept under another name. Classes of this package, and
# those of users, say so in ``kept_as``.
_KEPT_AS: dict[tuple[type, str], Callable[[Any], Any]] = {
    (gpflow.likelihoods.SwitchedLikelihood, "likelihood_list"): lambda switched: (
        switched.likelihoods
    ),
    (gpflow.likelihoods.HeteroskedasticTFPConditional, "distribution_class"): lambda likelihood: (
        type(likelihood.conditional_distribution(tf.zeros([1, 2], gpflow.default_float())))
    ),
}

# Settings of GPflow's likelihoods that are no arguments, with their values in a new one.
_SETTINGS = {"num_monte_carlo_points": 100, "num_gauss_hermite_points": 20}
# Points of a new likelihood's quadrature in each dimension, and the most that are built: more would
# take the room that a damaged description asks for.
_USUAL_POINTS, _MOST_POINTS, _MOST_NODES = 20, 500, 10_000

# GPflow's names of what makes parameters positive.
_BIJECTORS = ("exp", "softplus")

_FULL_NAME = re.compile(r"gpflow_dwp\.([a-z]\w*)\.\w+")
# What saved models may still call classes that have moved since.
_MOVED = {
    "gpflow_dwp.layers.GammaGaussian": "gpflow_dwp.likelihoods.GammaGaussian",
    "gpflow_dwp.layers.LocalInducingGPLayer": (
        "gpflow_dwp.latent_variable_deep_gp.LocalInducingGPLayer"
    ),
    "gpflow_dwp.layers.MatrixGaussianLayer": "gpflow_dwp.matrix_gaussian.MatrixGaussianLayer",
    "gpflow_dwp.models.LatentVariableDeepGP": (
        "gpflow_dwp.latent_variable_deep_gp.LatentVariableDeepGP"
    ),
    "gpflow_dwp.models.MatrixGaussianNetwork": "gpflow_dwp.matrix_gaussian.MatrixGaussianNetwork",
}


def to_config(value: Any) -> Any:
    """Describe an object as plain data that JSON can hold.

    :param value: A model, layer, kernel, likelihood, or anything that one is made of.
    :raises SavedModelError: If the object, or a part of it, cannot be described; the message
        names it.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, gpflow.Parameter | tf.Tensor | tf.Variable | np.ndarray):
        return {"array": np.asarray(value).tolist()}
    if isinstance(value, list | tuple):
        return [to_config(item) for item in value]
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, tfp.bijectors.Bijector):
        return _bijector_config(value)
    if type(value) is gpflow.quadrature.NDiagGHQuadrature:
        return {"quadrature": {"dim": int(value.dim), "n_gh": int(value.n_gh)}}
    if isinstance(value, type) and value in vars(tfp.distributions).values():
        return {"distribution_class": value.__name__}
    for name, function in _FUNCTIONS.items():
        if value is function:
            return {"function": name}
    if isinstance(value, tf.Module):
        description = {
            "class": _class_name(type(value)),
            "positive_bijector": None,
            "arguments": _arguments(value),
        }
        settings = _settings(value)
        if settings:
            description["settings"] = settings
        return description | {"positive_bijector": _positive_bijector(description, value)}
    raise SavedModelError(f"{value!r} cannot be described as plain data.")


def from_config(config: Any, custom_classes: Sequence[type] = ()) -> Any:
    """Build an object from what :func:`to_config` returned.

    :param config: The description.
    :param custom_classes: Classes other than GPflow's and this package's that it may name.
    :raises SavedModelError: If the description is damaged, or names an unknown class.
    """
    if isinstance(config, list):
        return [from_config(item, custom_classes) for item in config]
    if not isinstance(config, Mapping):
        return config
    if "array" in config:
        array = np.array(config["array"])
        if array.dtype.kind not in "biuf":
            raise SavedModelError("An array that does not hold numbers.")
        return array
    if "slice" in config:
        return slice(*config["slice"])
    if "quadrature" in config:
        return _build_quadrature(**config["quadrature"])
    if "function" in config:
        return _look_up(_FUNCTIONS, config["function"], "function")
    if "distribution_class" in config:
        return _look_up(vars(tfp.distributions), config["distribution_class"], "distribution")
    if "bijector" in config:
        return _look_up(vars(tfp.bijectors), config["bijector"], "bijector")()
    if "class" not in config:
        raise SavedModelError(f"A description without a class: keys {', '.join(config)}.")
    cls = _find_class(config["class"], custom_classes)
    arguments = {
        name: from_config(argument, custom_classes)
        for name, argument in config["arguments"].items()
    }
    settings = gpflow.config.config()
    if config.get("positive_bijector") is not None:
        settings = dataclasses.replace(settings, positive_bijector=config["positive_bijector"])
    try:
        with gpflow.config.as_context(settings):
            built = cls(**arguments)
    except (TypeError, ValueError) as error:
        raise SavedModelError(f"{config['class']} cannot be built: {error}") from error
    for name, value in config.get("settings", {}).items():
        if name not in _SETTINGS:
            raise SavedModelError(f"The setting {name!r} is not known here.")
        check_integers(**{name: value})
        setattr(built, name, value)
    return built


def find_own(name: str) -> Any:
    """What one of this package's rooms exports under a full name; None where there is none.

    :param name: As a description has it, of whatever age.
    """
    room = _FULL_NAME.fullmatch(_MOVED.get(name, name))
    if room is None:
        return None
    try:
        module = importlib.import_module(f"gpflow_dwp.{room[1]}")
    except ImportError:
        return None
    class_name = name.rpartition(".")[2]
    return getattr(module, class_name) if class_name in getattr(module, "__all__", ()) else None


def _arguments(instance: Any) -> dict[str, Any]:
    arguments = {}
    parameters = dict(inspect.signature(type(instance).__init__).parameters)
    parameters.pop("self")
    names = [
        name
        for name, parameter in parameters.items()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    kept_as = getattr(instance, "kept_as", {})
    takes_keywords = any(item.kind is item.VAR_KEYWORD for item in parameters.values())
    if isinstance(instance, gpflow.kernels.Kernel) and takes_keywords:
        names.append("active_dims")
    if takes_keywords and _has_own_quadrature(instance):
        names.append("quadrature")
    for name in names:
        if name == "name":
            continue
        getter = _KEPT_AS.get((type(instance), name))
        if name in kept_as:
            getter = operator.attrgetter(kept_as[name])
        if getter is not None:
            arguments[name] = to_config(getter(instance))
        elif hasattr(instance, name):
            arguments[name] = to_config(getattr(instance, name))
        elif parameters[name].default is inspect.Parameter.empty:
            raise SavedModelError(
                f"{type(instance).__name__} does not keep its constructor's argument {name!r} "
                "as an attribute, so it cannot be saved."
            )
    return arguments


def _settings(instance: Any) -> dict[str, int]:
    """Those of a likelihood that are others than a new one would have."""
    if not isinstance(instance, gpflow.likelihoods.Likelihood):
        return {}
    return {
        name: to_config(getattr(instance, name))
        for name, usual in _SETTINGS.items()
        if getattr(instance, name, usual) != usual
    }


def _has_own_quadrature(instance: Any) -> bool:
    """Whether a likelihood has another quadrature than GPflow makes."""
    quadrature = getattr(instance, "quadrature", None)
    return (
        isinstance(instance, gpflow.likelihoods.QuadratureLikelihood)
        and type(quadrature) is gpflow.quadrature.NDiagGHQuadrature
        and quadrature.n_gh != _USUAL_POINTS
    )


def _build_quadrature(dim: int, n_gh: int) -> gpflow.quadrature.NDiagGHQuadrature:
    check_integers(dim=dim, n_gh=n_gh)
    if n_gh > _MOST_POINTS or dim > np.log2(_MOST_NODES) or n_gh**dim > _MOST_NODES:
        raise SavedModelError(f"A quadrature of {n_gh} points in each of {dim} dimensions.")
    return gpflow.quadrature.NDiagGHQuadrature(dim, n_gh)


def _positive_bijector(description: dict[str, Any], instance: tf.Module) -> str | None:
    """Name what makes the object's own parameters positive, as GPflow's configuration does.

    Where there are both kinds, its class asks for one of them itself, whatever is configured: the
    one that is configured is found by building the object again.
    """
    kinds = _own_bijectors(instance)
    found = [name for name in _BIJECTORS if name in kinds.values()]
    if len(found) > 1:
        custom = [type(module) for module in (instance, *instance.submodules)]
        for name in found:
            try:
                again = from_config(description | {"positive_bijector": name}, custom)
            except Exception:  # whoever saves builds it once more, and says why that fails
                continue
            if _own_bijectors(again) == kinds:
                return name
    return found[0] if found else None


def _own_bijectors(instance: tf.Module) -> dict[str, str | None]:
    """What makes each of the object's own parameters positive, of GPflow's two; None if neither."""
    return {
        attribute: next(
            (name for name in _BIJECTORS if name in str(value.transform.name).lower()), None
        )
        for attribute, value in vars(instance).items()
        if isinstance(value, gpflow.Parameter) and value.transform is not None
    }


def _bijector_config(bijector: tfp.bijectors.Bijector) -> dict[str, str]:
    name = type(bijector).__name__
    if getattr(tfp.bijectors, name, None) is not type(bijector) or any(
        value is not None and key not in ("validate_args", "name")
        for key, value in bijector.parameters.items()
    ):
        raise SavedModelError(f"The transform {bijector.name} has parameters; it cannot be saved.")
    return {"bijector": name}


def _class_name(cls: type) -> str:
    for namespace, module in _GPFLOW.items():
        if getattr(module, cls.__name__, None) is cls:
            return f"{namespace}.{cls.__name__}"
    room = _FULL_NAME.match(f"{cls.__module__}.{cls.__name__}")
    name = f"gpflow_dwp.{room[1]}.{cls.__name__}" if room else ""
    return name if find_own(name) is cls else f"custom.{cls.__qualname__}"


def _find_class(name: str, custom_classes: Sequence[type]) -> type:
    known: dict[str, type] = {_class_name(cls): cls for cls in custom_classes}
    namespace, _, class_name = name.rpartition(".")
    found = known.get(name) or find_own(name)
    if namespace in _GPFLOW:
        found = getattr(_GPFLOW[namespace], class_name, None)
    if not (isinstance(found, type) and issubclass(found, tf.Module)):
        raise SavedModelError(
            f"The class {name!r} is not known here; pass it in custom_classes if it is yours."
        )
    return found


def _look_up(table: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in table:
        raise SavedModelError(f"The {what} {name!r} is not known here.")
    return table[name]
