"""How large a described model would be, before anything of it is built."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy.typing as npt

from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.models._moved_names import present_name

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
    """How many numbers an object starts with that are not in its description one by one."""
    count = _COUNTS.get(present_name(str(described["class"])))
    arguments = described.get("arguments")
    return 0 if count is None or not isinstance(arguments, Mapping) else count(_Sizes(arguments))


class _Sizes:
    """What a constructor's arguments say about sizes; 0 where they say nothing of use."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = arguments

    def __getitem__(self, name: str) -> int:
        return _as_size(self._arguments.get(name))

    def all(self, name: str) -> list[int]:
        """Sizes in a list."""
        values = _without_array(self._arguments.get(name))
        return list(map(_as_size, values)) if isinstance(values, list) else []

    def rows(self, name: str) -> int:
        """Rows of an array, also of one in an object's argument Z."""
        value = self._arguments.get(name)
        if isinstance(value, Mapping) and isinstance(value.get("arguments"), Mapping):
            value = value["arguments"].get("Z")
        value = _without_array(value)
        return len(value) if isinstance(value, list) else 0

    def holds(self, name: str, value: Any) -> bool:
        """Whether an argument has a value."""
        return bool(self._arguments.get(name) == value)


def _without_array(value: Any) -> Any:
    return value.get("array") if isinstance(value, Mapping) else value


def _as_size(value: Any) -> int:
    value = _without_array(value)
    return max(0, value) if isinstance(value, int) else 0


def _of_wishart_layer(sizes: _Sizes) -> int:
    M = sizes["num_inducing"]
    mixing = 0 if sizes.holds("posterior", "GW") else M**2
    mixture = 0 if sizes.holds("whiten", True) else M**2
    return M * min(sizes["df"], M) + mixing + mixture


def _of_gram_layer(sizes: _Sizes) -> int:
    M = sizes["num_inducing"]
    return M * (M + sizes["width"])


def _of_output_layer(sizes: _Sizes) -> int:
    M = max(sizes["num_inducing"], sizes.rows("pseudo_targets"))
    return M * (M + sizes["num_outputs"])


def _of_local_layer(sizes: _Sizes) -> int:
    functions = sizes.rows("mixing") or sizes["num_outputs"]
    # A triangle of each function is packed.
    return functions * sizes.rows("inducing_variable") ** 2 // 2


def _of_network_layer(sizes: _Sizes) -> int:
    rows, columns = sizes["num_inputs"] + 1, sizes["num_outputs"]
    full_rows = rows**2 if sizes.holds("row_covariance", "full") else 0
    full_columns = columns**2 if sizes.holds("column_covariance", "full") else 0
    mean = 0 if sizes.holds("zero_mean", True) else rows * columns
    pseudo_data = sizes["num_pseudo_data"] * (rows + columns)
    return mean + rows + columns + pseudo_data + (full_rows + full_columns) // 2


def _of_encoder(sizes: _Sizes) -> int:
    widths = [sizes["num_inputs"], *sizes.all("hidden_dims"), 2 * sizes["latent_dim"]]
    return sum(rows * columns for rows, columns in itertools.pairwise(widths))


def _of_convolution(sizes: _Sizes) -> int:
    shapes = zip(sizes.all("image_shape"), sizes.all("patch_shape"), strict=False)
    places = math.prod(max(0, image - patch) + 1 for image, patch in shapes)
    return places * max(1, sizes["colour_channels"])


_COUNTS: dict[str, Callable[[_Sizes], int]] = {
    # It does not keep its degree, so none can have been saved.
    "gpflow.functions.Polynomial": lambda sizes: sys.maxsize,
    "gpflow.kernels.Convolutional": _of_convolution,
    "gpflow.kernels.Coregion": lambda sizes: sizes["output_dim"] * (1 + sizes["rank"]),
    "gpflow_dwp.layers.FreeEncoder": lambda sizes: 2 * sizes["num_data"] * sizes["latent_dim"],
    "gpflow_dwp.layers.GlobalInducingGPLayer": _of_output_layer,
    "gpflow_dwp.layers.GlobalInducingGramLayer": _of_gram_layer,
    "gpflow_dwp.layers.InverseWishartLayer": lambda sizes: sizes["num_inducing"] ** 2,
    "gpflow_dwp.latent_variable_deep_gp.LocalInducingGPLayer": _of_local_layer,
    "gpflow_dwp.matrix_gaussian.MatrixGaussianLayer": _of_network_layer,
    "gpflow_dwp.layers.NetworkEncoder": _of_encoder,
    "gpflow_dwp.layers.WishartLayer": _of_wishart_layer,
    "gpflow_dwp.layers.WishartPosterior": lambda sizes: sizes["num_inducing"] * sizes["df"],
}
