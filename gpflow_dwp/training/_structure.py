"""What the compiled steps of a model depend on, apart from the values of its variables."""

from __future__ import annotations

import enum
import hashlib
import types
import weakref
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.likelihoods import Likelihood, MonteCarloLikelihood
from gpflow.utilities import parameter_dict

from gpflow_dwp.models import VariationalModel

__all__ = ["Structure", "may_draw_globally", "names_of", "structure_of"]

_PLAIN = (bool, int, float, complex, str, bytes, type, enum.Enum, tf.DType, np.dtype)
_PACKAGES = ("check_shapes", "gpflow", "gpflow_dwp", "tensorflow", "tensorflow_probability")

# Numbers that steps take as arguments, and those of predictions.
_OF_THE_RUN = ("num_data", "num_prediction_samples")
# TensorFlow's own books about a module, which also start with "_self_".
_BOOKS = ("_name", "_name_scope", "_scope_name", "_obj_reference_counts_dict", "_setattr_tracking")


class Structure(NamedTuple):
    """A description that is equal for models of which one step can be compiled.

    Its variables come in the order in which the description comes to them.
    """

    key: Hashable
    variables: list[tf.Variable]


def structure_of(model: VariationalModel) -> Structure | None:
    """Describe all that there is in a model, numbers and arrays by value.

    Objects of classes from elsewhere, and functions, stand for themselves: a description with one
    in it is equal only to those with the same one. It does not keep them alive. None if there is
    something that cannot be described.
    """
    walk = _Walk()
    attributes = {name: value for name, value in vars(model).items() if name not in _OF_THE_RUN}
    try:
        key = (walk.kind(model), walk.attributes(attributes))
        hash(key)
    except (NotImplementedError, TypeError):
        return None
    return Structure(key, walk.variables)


def names_of(model: VariationalModel, variables: Iterable[tf.Variable]) -> list[str]:
    """Name variables by the paths of their parameters, where they are some of the model's."""
    paths = {id(each.unconstrained_variable): path for path, each in parameter_dict(model).items()}
    return [paths.get(id(variable), variable.name) for variable in variables]


def may_draw_globally(likelihood: Likelihood) -> bool:
    """Say whether a likelihood may draw from TensorFlow's global generator."""
    return any(
        isinstance(part, MonteCarloLikelihood) or not _is_known(type(part))
        for part in (likelihood, *likelihood.submodules)
        if isinstance(part, Likelihood)
    )


def _is_known(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in _PACKAGES


class _Walk:
    """Goes through objects, and comes to each of them once."""

    def __init__(self) -> None:
        self.variables: list[tf.Variable] = []
        self._seen: dict[int, tuple[int, object]] = {}

    def describe(self, value: Any) -> Hashable:
        if value is None or isinstance(value, _PLAIN):
            return type(value), value
        if id(value) in self._seen:
            return "again", self._seen[id(value)][0]
        self._seen[id(value)] = len(self._seen), value  # alive, so that its id stays its own
        if isinstance(value, tf.Variable):
            self.variables.append(value)
            shape = _dimensions(value.shape)
            return "variable", value.dtype, shape, value.trainable, value.device
        if isinstance(value, tf.Tensor | np.ndarray | np.generic):
            array = np.asarray(value)
            digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
            return "array", array.dtype.str, array.shape, digest
        if isinstance(value, tf.TensorShape):
            return "shape", _dimensions(value)
        if isinstance(value, slice):
            return "slice", self._each(value.start, value.stop, value.step)
        if isinstance(value, Mapping):
            return "mapping", self._each(*value.keys()), self._each(*value.values())
        if isinstance(value, list | tuple):
            return "sequence", self._each(*value)
        if isinstance(value, types.MethodType):
            return "method", self._each(value.__self__, value.__func__)
        if isinstance(value, types.FunctionType):
            return weakref.ref(value)
        if isinstance(value, tfp.bijectors.Bijector | tfp.distributions.Distribution):
            return self.kind(value), self.describe(dict(value.parameters))
        return self.kind(value), self.attributes(getattr(value, "__dict__", {}))

    def kind(self, value: object) -> Any:
        """What an object is: its class, or itself."""
        return type(value) if _is_known(type(value)) else weakref.ref(value)

    def attributes(self, attributes: Mapping[str, Any]) -> Hashable:
        return tuple(
            (name, self.describe(value))
            for name, value in sorted(attributes.items())
            if name not in _BOOKS and not name.startswith("_self_")
        )

    def _each(self, *values: Any) -> Hashable:
        return tuple(self.describe(value) for value in values)


def _dimensions(shape: tf.TensorShape) -> Hashable:
    return None if shape.rank is None else tuple(shape.as_list())
