"""What the compiled steps of a model depend on, apart from the values of its variables."""

from __future__ import annotations

import contextlib
import enum
import operator
import types
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.likelihoods import Likelihood, MonteCarloLikelihood
from gpflow.utilities import parameter_dict

from gpflow_dwp.models import VariationalModel

__all__ = ["holding", "may_draw_globally", "names_of", "structure_of"]

_PLAIN = (bool, int, float, complex, str, bytes, type, enum.Enum, tf.DType, np.dtype)
_PACKAGES = ("check_shapes", "gpflow", "gpflow_dwp", "tensorflow", "tensorflow_probability")

# Numbers that steps take as arguments, and those of predictions.
_OF_THE_RUN = ("num_data", "num_prediction_samples")
# TensorFlow's own books about a module, which also start with "_self_".
_BOOKS = ("_name", "_name_scope", "_scope_name", "_obj_reference_counts_dict", "_setattr_tracking")


def structure_of(model: VariationalModel) -> Hashable | None:
    """Describe all that there is in a model, but for the values of its variables.

    Numbers and arrays are there by value. None if there is something that cannot be described: a
    function, or an object of a class from elsewhere, of which nobody knows what it depends on.
    """
    attributes = {name: value for name, value in vars(model).items() if name not in _OF_THE_RUN}
    try:
        walk = _Walk()
        key = walk.kind(model), walk.attributes(attributes)
        hash(key)
    except (NotImplementedError, TypeError):
        return None
    return key


@contextlib.contextmanager
def holding(
    model: VariationalModel,
    variables: Sequence[tf.Variable],
    values: Sequence[tf.Tensor],
    num_data: tf.Tensor,
) -> Iterator[None]:
    """Let a model be one of arrays: they stand where its variables and the size of its data do."""
    by_id = {id(variable): value for variable, value in zip(variables, values, strict=True)}
    held = [(model.__dict__, "num_data", model.num_data, num_data)]
    for module in (model, *model.submodules):
        for name, value in module.__dict__.items():
            changed = value if name.startswith("_self_") else _with_values(value, by_id)
            if changed is not value:
                held.append((module.__dict__, name, value, changed))
    try:
        for attributes, name, _, changed in held:
            attributes[name] = changed
        yield
    finally:
        for attributes, name, value, _ in held:
            attributes[name] = value


def _with_values(value: Any, by_id: Mapping[int, tf.Tensor]) -> Any:
    if isinstance(value, tf.Variable):
        return by_id.get(id(value), value)
    if isinstance(value, dict):  # other mappings, of Keras, are keyed by variables
        changed = {key: _with_values(part, by_id) for key, part in value.items()}
        return changed if any(changed[key] is not part for key, part in value.items()) else value
    if isinstance(value, list | tuple):
        parts = [_with_values(part, by_id) for part in value]
        return parts if any(map(operator.is_not, parts, value)) else value
    return value


def names_of(model: VariationalModel, variables: Iterable[tf.Variable]) -> list[str]:
    """Name variables by the paths of their parameters, where they are some of the model's."""
    parameters = parameter_dict(model).items()  # and variables of a user's kernels
    paths = {id(getattr(each, "unconstrained_variable", each)): path for path, each in parameters}
    return [paths.get(id(variable), variable.name) for variable in variables]


def may_draw_globally(likelihood: Likelihood) -> bool:
    """Say whether a likelihood may draw from TensorFlow's global generator."""
    parts = [part for part in likelihood.submodules if isinstance(part, Likelihood)]
    return any(isinstance(part, MonteCarloLikelihood) for part in parts) or not all(
        _is_known(type(part)) for part in (likelihood, *parts)
    )


def _is_known(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in _PACKAGES


class _Walk:
    """Goes through objects, and comes to each of them once."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, object]] = {}

    def describe(self, value: Any) -> Hashable:
        if value is None or isinstance(value, _PLAIN):
            return type(value), value
        if id(value) in self._seen:
            return "again", self._seen[id(value)][0]
        self._seen[id(value)] = len(self._seen), value  # alive, so that its id stays its own
        if isinstance(value, tf.Variable):
            shape = _dimensions(value.shape)
            return "variable", value.dtype, shape, value.trainable, value.device
        if isinstance(value, tf.Tensor | np.ndarray | np.generic):
            array = np.asarray(value)
            return "array", array.dtype.str, array.shape, array.tobytes()
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
        if isinstance(value, tfp.bijectors.Bijector | tfp.distributions.Distribution):
            return self.kind(value), self.describe(dict(value.parameters))
        return self.kind(value), self.attributes(getattr(value, "__dict__", {}))

    def kind(self, value: object) -> type:
        if isinstance(value, types.FunctionType) or not _is_known(type(value)):
            raise NotImplementedError
        return type(value)

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
