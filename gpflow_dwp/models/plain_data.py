"""Objects as plain data, from which they can be built again: models, layers, kernels, likelihoods.

A description has the name of a class and the arguments of its constructor, read from the attributes
of the same names, as GPflow's classes keep them, or of those that a class attribute ``kept_as``
gives by argument. Arguments that are kept nowhere and have a default, such as seeds of starting
values, are left out, and so is a likelihood's quadrature.

A description may be a stranger's. It names what is on a closed list, or the user's own classes;
each argument takes numbers, text, arrays, or parts of its kind; and what is built from it takes
little room beside its arrays.
"""

from __future__ import annotations

import functools
import inspect
import operator
import pkgutil
from collections.abc import Mapping, Sequence
from types import FunctionType, NoneType
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow import Parameter, default_float
from gpflow.functions import Function
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel
from gpflow.likelihoods import HeteroskedasticTFPConditional, Likelihood, RobustMax
from tensorflow_probability import bijectors, distributions

from gpflow_dwp.exceptions import SavedModelError

__all__ = ["Arrays", "Builder", "from_config", "to_config"]

Arrays = dict[str, npt.NDArray[Any]]

# What a description may name: the classes that these modules of ours list, and of others, by homes.
_OURS = (
    "kernels latent_variable_deep_gp latent_variable_deep_gp.latent_variable layers likelihoods"
    " likelihoods.row_means matrix_gaussian models models.raw_mean"
)
_LISTED = {
    "gpflow.functions": "Constant Identity Linear Zero",
    "gpflow.inducing_variables": "InducingPoints",
    "gpflow.kernels": "ArcCosine ChangePoints Constant Convolutional Coregion Cosine Exponential"
    " Linear LinearCoregionalization Matern12 Matern32 Matern52 Periodic Polynomial Product"
    " RationalQuadratic SeparateIndependent SharedIndependent SquaredExponential Sum White",
    "gpflow.likelihoods": "Bernoulli Beta Exponential Gamma Gaussian GaussianMC"
    " HeteroskedasticTFPConditional MultiClass Ordinal Poisson RobustMax Softmax StudentT",
    "gpflow.likelihoods.utils": "inv_probit",
    "tf.math": "abs cos erf exp expm1 log1p sigmoid sin softplus sqrt square tanh",
    "tf.nn": "elu gelu leaky_relu relu relu6 selu softsign swish",
    "tfp.bijectors": "Ascending Chain Exp Expm1 FillScaleTriL FillTriangular Identity Invert Log"
    " Log1p NormalCDF Power Reciprocal Scale Shift Sigmoid Sinh SoftClip SoftmaxCentered Softplus"
    " Softsign Square Tanh TransformDiagonal",
    "tfp.distributions": "Beta Cauchy Chi Chi2 Dirichlet Exponential Gamma GeneralizedNormal Gumbel"
    " HalfCauchy HalfNormal HalfStudentT InverseGamma InverseGaussian Kumaraswamy Laplace"
    " LogLogistic LogNormal Logistic LogitNormal MultivariateNormalDiag MultivariateNormalTriL"
    " Normal Pareto StudentT Triangular TruncatedCauchy TruncatedNormal Uniform Weibull",
}

# What arguments take besides plain values, which all others take alone.
_KINDS = {
    Kernel: "kernel kernels base_kernel",
    Likelihood: "likelihood",
    Function: "mean_function scale shape variance",
    InducingPoints: "inducing_variable",
    bijectors.Bijector: "bijector bijectors diag_bijector scale_transform",
    tf.Module: "layers layer encoder warp",
    (FunctionType, RobustMax): "invlink",
    type(distributions.Distribution): "distribution_class",
}
_PLAIN = (bool, int, float, str, np.ndarray, slice, NoneType)
_OF_TFP = (bijectors.Bijector, distributions.Distribution)

# Whole numbers for which a constructor takes no room.
_NO_SIZES = (
    "active_dims categories df num_data num_neighbours num_prediction_samples num_samples seed"
)

# Room for numbers: what any description may take, what a part takes besides its sizes, and how many
# go with each byte of the arrays.
_ROOM, _ROOM_OF_PART, _ROOM_OF_BYTE = 2**23, 2**12, 0.5


def to_config(value: Any, arrays: Arrays | None = None) -> Any:
    """Describe a model, or anything that one is made of, as plain data that JSON can hold.

    :param arrays: Takes arrays, by names; None for a description that has them itself.
    :raises SavedModelError: If a part cannot be described; the message names it.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Parameter | tf.Tensor | tf.Variable | np.ndarray):
        return {"array": _put(np.asarray(value), arrays)}
    if isinstance(value, list | tuple):
        return [to_config(item, arrays) for item in value]
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, FunctionType | type) and (name := _name(value)):
        return {"name": name}
    if not isinstance(value, tf.Module) or (isinstance(value, _OF_TFP) and not _name(type(value))):
        raise SavedModelError(f"{value!r} cannot be described as plain data")
    arguments = {}
    for name, part in _arguments(value).items():
        try:
            arguments[name] = to_config(part, arrays)
        except SavedModelError as error:
            raise SavedModelError(f"{type(value).__name__}.{name}: {error}") from error
    cls = type(value)
    return {"class": _name(cls, f"custom.{cls.__qualname__}"), "arguments": arguments}


def _put(array: npt.NDArray[Any], arrays: Arrays | None) -> Any:
    """Return an array's numbers, or the name by which it is, or is now, one of the arrays."""
    if arrays is None or array.ndim == 0:
        return array.tolist()
    for name, other in arrays.items():  # where parameters without a transform are already
        if other.dtype == array.dtype and np.array_equal(other, array):
            return name
    arrays[name := f"argument {len(arrays)}"] = array
    return name


def _arguments(part: Any) -> dict[str, Any]:
    """What an object's constructor was given, as far as the object keeps it."""
    if isinstance(part, _OF_TFP):
        given, skipped = part.parameters.items(), ("name", "validate_args", "allow_nan_stats")
        return {name: value for name, value in given if value is not None and name not in skipped}
    arguments, kept_as = {}, getattr(part, "kept_as", {})
    for name, each in inspect.signature(type(part)).parameters.items():
        if each.kind is each.VAR_KEYWORD and isinstance(part, Kernel):
            arguments["active_dims"] = part.active_dims
        elif name == "distribution_class" and isinstance(part, HeteroskedasticTFPConditional):
            zeros = tf.zeros([1, 2], default_float())
            arguments[name] = type(part.conditional_distribution(zeros))
        elif name != "name" and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL):
            try:
                arguments[name] = operator.attrgetter(kept_as.get(name, name))(part)
            except AttributeError:
                if each.default is each.empty:
                    forgets = f"{type(part).__name__} does not keep its constructor's argument"
                    raise SavedModelError(f"{forgets} {name!r} as an attribute") from None
    return arguments


def from_config(
    config: Any, custom_classes: Sequence[type] = (), arrays: Arrays | None = None
) -> Any:
    """Build what :func:`to_config` described; arguments as there, and as for :func:`load_model`.

    :raises SavedModelError: If the description is damaged, names what is not on the list, or asks
        for more room than its arrays account for.
    """
    return Builder(custom_classes, arrays or {})(config)


class Builder:
    """Builds what is described, all of it within the room that the arrays account for."""

    def __init__(self, custom_classes: Sequence[type], arrays: Arrays) -> None:
        self._named = dict(_known())
        for cls in set(custom_classes):
            name = _name(cls, f"custom.{cls.__qualname__}")
            self._named[name] = cls if self._named.get(name, cls) is cls else None
        self._arrays = arrays
        self._room = _ROOM + _ROOM_OF_BYTE * sum(array.nbytes for array in arrays.values())

    def __call__(self, config: Any) -> Any:
        """Build what one description has; errors as of :func:`from_config`."""
        self._take(_ROOM_OF_PART * repr(config).count("'class'"), "A description of so many parts")
        return self._build(config)

    def _build(self, config: Any) -> Any:
        if isinstance(config, list):
            return [self._build(item) for item in config]
        if not isinstance(config, Mapping):
            return config
        if "slice" in config:
            return slice(*config["slice"])
        if "array" in config:
            name = config["array"]
            array = self._arrays.get(name) if isinstance(name, str) else np.array(name)
            if array is None or array.dtype.kind not in "biuf":
                raise SavedModelError(f"{name!r:.80} is no array of numbers, or not in the archive")
            self._take(array.size, "an array that is mentioned again and again")
            return array
        name = config.get("name", config.get("class"))
        found = self._named.get(str(name))
        if found is None or ("class" in config and isinstance(found, FunctionType)):
            several = "is not known here, or that of several classes"
            raise SavedModelError(f"The name {name!r} {several}; pass yours in custom_classes.")
        return found if "name" in config else self._part(name, found, config["arguments"])

    def _part(self, name: str, cls: type, described: Mapping[str, Any]) -> Any:
        known = inspect.signature(cls).parameters
        arguments = {
            key: self._build(value)
            for key, value in described.items()
            # What classes had in an earlier version, at what they always do now.
            if key in known or (value and (key, value) != ("stick_the_landing", True))
        }
        if cls in _known().values():
            self._check(name, arguments)
        for key, value in arguments.items() if issubclass(cls, _OF_TFP) else ():
            if isinstance(value, float | np.ndarray) and np.asarray(value).dtype.kind == "f":
                arguments[key] = np.asarray(value, default_float())  # TFP's own is float32
        try:
            return cls(**arguments)
        except (TypeError, ValueError) as error:
            raise SavedModelError(f"{name} cannot be built: {error}") from error

    def _check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Refuse parts of the wrong kinds, and sizes of which there are no arrays."""
        targets: Any = arguments.get("pseudo_targets")
        sizes = list(np.shape(targets)[:1])
        for key, value in arguments.items():
            kinds = [kind for kind, keys in _KINDS.items() if key in keys.split()]
            for item in value if isinstance(value, list) else [value]:
                if not isinstance(item, (*_PLAIN, *kinds)):
                    raise SavedModelError(f"{name} cannot have {item!r} as {key}")
                if key not in _NO_SIZES.split() and isinstance(item, int | np.ndarray):
                    numbers = np.asarray(item)
                    sizes += numbers.ravel().tolist() if numbers.dtype.kind in "iuO" else []
        # A matrix of its inducing points for each output; a layer of rows has but their number.
        points: Any = arguments.get("inducing_variable")
        (num_inducing,) = np.shape(getattr(points, "Z", points))[:1] or [1]
        count = 0 if "inputs" in arguments else (sum(map(abs, sizes)) * num_inducing) ** 2
        self._take(count, f"{name} of sizes {sizes}")

    def _take(self, count: float, what: str) -> None:
        self._room -= count
        if self._room < 0:
            raise SavedModelError(f"{what} takes more room than the model's arrays account for")


@functools.cache
def _known() -> dict[str, Any]:
    """What is listed, by its full name."""
    found: dict[str, Any] = {}
    for home, names in ({f"gpflow_dwp.{each}": "" for each in _OURS.split()} | _LISTED).items():
        full = home.replace("tfp.", "tensorflow_probability.").replace("tf.", "tensorflow.")
        room = pkgutil.resolve_name(full)  # which imports what is lazy, too
        for name in names.split() or room.__all__:
            each = getattr(room, name)
            if names or (isinstance(each, type) and issubclass(each, tf.Module)):
                found[f"{home}.{name}"] = each
    return found


def _name(value: Any, of_others: str = "") -> str:
    """The full name by which a class or function is known."""
    return next((name for name, each in _known().items() if each is value), of_others)
