"""Objects as plain data, from which they can be built again: models, layers, kernels, likelihoods.

An object's configuration is its class and the arguments of its constructor, read from the
attributes of the same names, as GPflow's classes keep them, or of those that a class attribute
``kept_as`` gives by argument, dotted where they are an attribute's. Arguments that are kept nowhere
and have a default, such as seeds of starting values, are left out. A likelihood's numbers of points
are there where they are others than GPflow's.
"""

from __future__ import annotations

import importlib
import inspect
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gpflow
import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.kernels import Product, categorical
from gpflow.kernels.categorical import Categorical

from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.validation import check_integers

__all__ = ["Archive", "find_own", "from_config", "to_config"]

_GPFLOW: dict[str, Any] = {
    f"gpflow.{name}": getattr(gpflow, name)
    for name in ("functions", "inducing_variables", "kernels", "likelihoods")
} | {"gpflow.kernels.categorical": categorical}
_FUNCTIONS: dict[str, Any] = {
    "tf.math": tf.math,
    "tf.nn": tf.nn,
    "gpflow.likelihoods.utils": gpflow.likelihoods.utils,
}
_TFP: dict[str, Any] = {
    "tfp.bijectors": tfp.bijectors,
    "tfp.distributions": tfp.distributions,
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
    (Categorical, "non_categorical_kernel"): lambda kernel: _product(
        kernel.wrapped_kernel.kernels[:-1]
    ),
    (Categorical, "categorical_kernel"): lambda kernel: kernel.wrapped_kernel.kernels[-1],
    (Categorical, "num_labels"): lambda kernel: int(kernel._Z_deltas.shape[0]) + 1,
}

# Settings of GPflow's likelihoods that are no arguments, with their values in a new one.
_SETTINGS = {"num_monte_carlo_points": 100, "num_gauss_hermite_points": 20}
# Points of a new likelihood's quadrature in each dimension, and the most that are built: more would
# take the room that a damaged description asks for.
_USUAL_POINTS, _MOST_POINTS, _MOST_NODES = 20, 500, 10_000

_FULL_NAME = re.compile(r"gpflow_dwp\.([a-z]\w*)\.\w+")


class Archive(NamedTuple):
    """Where a description has its arrays.

    :param arrays: Arrays by the names that the description has.
    :param names: Names of arrays that are there, by the identity of the parameters that they are
        the values of.
    """

    arrays: dict[str, npt.NDArray[Any]]
    names: Mapping[int, str] = {}


def to_config(value: Any, archive: Archive | None = None) -> Any:
    """Describe an object as plain data that JSON can hold.

    :param value: A model, layer, kernel, likelihood, or anything that one is made of.
    :param archive: Takes arrays; None for a description that has them itself.
    :raises SavedModelError: If the object, or a part of it, cannot be described; the message
        names it.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, gpflow.Parameter | tf.Tensor | tf.Variable | np.ndarray):
        return {"array": _put(value, archive)}
    if isinstance(value, list | tuple):
        return [to_config(item, archive) for item in value]
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, tfp.bijectors.Bijector | tfp.distributions.Distribution):
        return _tfp_config(value)
    if type(value) is gpflow.quadrature.NDiagGHQuadrature:
        return {"quadrature": {"dim": int(value.dim), "n_gh": int(value.n_gh)}}
    if isinstance(value, type) and value in vars(tfp.distributions).values():
        return {"distribution_class": value.__name__}
    for home, module in _FUNCTIONS.items():
        name = getattr(value, "__name__", "")
        if callable(value) and getattr(module, name, None) is value:
            return {"function": f"{home}.{name}"}
    if any(cls.__module__.split(".")[0] in ("keras", "tf_keras") for cls in type(value).__mro__):
        raise SavedModelError(f"{type(value).__name__} is a network of Keras")
    if isinstance(value, tf.Module):
        settings = _settings(value)
        return {
            "class": _class_name(type(value)),
            "arguments": _arguments(value, archive),
            **({"settings": settings} if settings else {}),
        }
    raise SavedModelError(f"{value!r} cannot be described as plain data")


def from_config(
    config: Any, custom_classes: Sequence[type] = (), archive: Archive | None = None
) -> Any:
    """Build an object from what :func:`to_config` returned.

    :param config: The description.
    :param custom_classes: Classes other than GPflow's and this package's that it may name.
    :param archive: Has its arrays; None where it has them itself.
    :raises SavedModelError: If the description is damaged, or names an unknown class.
    """
    if isinstance(config, list):
        return [from_config(item, custom_classes, archive) for item in config]
    if not isinstance(config, Mapping):
        return config
    if "array" in config:
        found = config["array"]
        if isinstance(found, str):
            found = _look_up({} if archive is None else archive.arrays, found, "array")
        array = np.array(found)
        if array.dtype.kind not in "biuf":
            raise SavedModelError("An array that does not hold numbers.")
        return array
    if "slice" in config:
        return slice(*config["slice"])
    if "quadrature" in config:
        return _build_quadrature(**config["quadrature"])
    if "function" in config:
        home, _, name = config["function"].rpartition(".")
        return _look_up(vars(_look_up(_FUNCTIONS, home, "module")), name, "function")
    if "distribution_class" in config:
        return _look_up(vars(tfp.distributions), config["distribution_class"], "distribution")
    if "tfp" in config:
        return _build_tfp(config)
    if "class" not in config:
        raise SavedModelError(f"A description without a class: keys {', '.join(config)}.")
    cls = _find_class(config["class"], custom_classes)
    arguments = {
        name: from_config(argument, custom_classes, archive)
        for name, argument in config["arguments"].items()
    }
    try:
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
    """What one of this package's rooms exports under a full name; None where there is none."""
    room = _FULL_NAME.fullmatch(name)
    if room is None:
        return None
    try:
        module = importlib.import_module(f"gpflow_dwp.{room[1]}")
    except ImportError:
        return None
    class_name = name.rpartition(".")[2]
    return getattr(module, class_name) if class_name in getattr(module, "__all__", ()) else None


def _put(value: Any, archive: Archive | None) -> Any:
    array = np.asarray(value)
    if archive is None or array.ndim == 0:
        return array.tolist()
    name = archive.names.get(id(value), f"argument {len(archive.arrays)}")
    archive.arrays.setdefault(name, array)
    return name


def _arguments(instance: Any, archive: Archive | None) -> dict[str, Any]:
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
        if getter is None and not hasattr(instance, name):
            if parameters[name].default is inspect.Parameter.empty:
                raise SavedModelError(
                    f"{type(instance).__name__} does not keep its constructor's argument {name!r} "
                    "as an attribute"
                )
            continue
        value = getattr(instance, name) if getter is None else getter(instance)
        try:
            arguments[name] = to_config(value, archive)
        except SavedModelError as error:
            raise SavedModelError(f"{type(instance).__name__}.{name}: {error}") from error
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


def _product(kernels: Sequence[gpflow.kernels.Kernel]) -> gpflow.kernels.Kernel:
    return kernels[0] if len(kernels) == 1 else Product(kernels)


def _tfp_config(value: Any) -> dict[str, Any]:
    """A transform or prior: one of TFP's, whose own parameters can be described."""
    name = type(value).__name__
    for home, module in _TFP.items():
        if getattr(module, name, None) is type(value):
            arguments = {
                key: to_config(part)
                for key, part in value.parameters.items()
                if part is not None and key not in ("name", "validate_args", "allow_nan_stats")
            }
            return {"tfp": f"{home}.{name}", "arguments": arguments}
    raise SavedModelError(f"{value.name} is not one of TFP's bijectors or distributions")


def _build_tfp(config: Mapping[str, Any]) -> Any:
    home, _, name = config["tfp"].rpartition(".")
    kind = _look_up(vars(_look_up(_TFP, home, "module")), name, "transform or prior")
    if not isinstance(kind, type):
        raise SavedModelError(f"{config['tfp']} is no class.")

    def of_default_type(value: Any) -> Any:
        # TFP would take numbers of Python for float32.
        are_real = isinstance(value, float) or getattr(value, "dtype", np.dtype(int)).kind == "f"
        return np.asarray(value, gpflow.default_float()) if are_real else value

    arguments = {name: from_config(part) for name, part in config["arguments"].items()}
    return kind(**{name: of_default_type(part) for name, part in arguments.items()})


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
