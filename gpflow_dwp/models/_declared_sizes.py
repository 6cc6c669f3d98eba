"""How large a described model would be, before anything of it is built."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy.typing as npt

from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.layers.declared_sizes import DeclaredSizes
from gpflow_dwp.models.configuration import find_own

__all__ = ["check_declared_sizes"]

# Packed triangles have half as many numbers, and some objects have none.
_TIMES_AS_MANY, _MORE_NUMBERS = 2, 10_000
_OBJECTS_PER_ARRAY, _MORE_OBJECTS = 4, 32


def check_declared_sizes(config: Any, weights: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse the description of a model that would be much larger than its weights.

    :param config: What :func:`gpflow_dwp.models.configuration.to_config` returned, or what has been
        made of that since.
    :param weights: The values of all parameters.
    :raises SavedModelError: If it names many more objects than there are weights, or these would
        begin with more numbers.
    """
    objects = list(_objects(config))
    if len(objects) > _OBJECTS_PER_ARRAY * len(weights) + _MORE_OBJECTS:
        raise SavedModelError(
            f"it describes {len(objects)} objects, but its weights are {len(weights)} arrays."
        )
    declared = sum(_num_starting_values(each) for each in objects)
    held = sum(array.size for array in weights.values())
    if declared > _TIMES_AS_MANY * held + _MORE_NUMBERS:
        raise SavedModelError(
            f"it describes a model of {declared} numbers or more, but its weights are {held}."
        )


def _objects(config: Any) -> Iterator[Mapping[str, Any]]:
    """Descriptions of objects within a description."""
    waiting = [config]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting.extend(each)
        elif isinstance(each, Mapping):
            if "class" in each:
                yield each
            waiting.extend(value for name, value in each.items() if name != "array")


def _num_starting_values(described: Mapping[str, Any]) -> int:
    name, arguments = str(described["class"]), described.get("arguments")
    own = getattr(find_own(name), "num_starting_values", None)
    count: Callable[[DeclaredSizes], int] | None = _OF_GPFLOW.get(name, own)
    if count is None or not isinstance(arguments, Mapping):
        return 0
    return count(DeclaredSizes(arguments))


def _of_convolution(declared: DeclaredSizes) -> int:
    shapes = zip(declared.all("image_shape"), declared.all("patch_shape"), strict=False)
    places = math.prod(max(0, image - patch) + 1 for image, patch in shapes)
    return places * max(1, declared["colour_channels"])


_OF_GPFLOW: dict[str, Callable[[DeclaredSizes], int]] = {
    # It does not keep its degree, so none can have been saved.
    "gpflow.functions.Polynomial": lambda declared: sys.maxsize,
    "gpflow.kernels.Convolutional": _of_convolution,
    "gpflow.kernels.Coregion": lambda declared: declared["output_dim"] * (1 + declared["rank"]),
}
