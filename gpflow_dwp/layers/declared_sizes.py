"""Sizes in a description of an object, from which its class says how large it would be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["DeclaredSizes"]


class DeclaredSizes:
    """What a constructor's arguments say about sizes; 0 where they say nothing of use.

    A class of this package whose objects start with numbers that their description does not have
    one by one says how many these are, by a static method ``num_starting_values(declared)``.

    :param arguments: Plain data by the arguments' names, of which nothing is certain.
    """

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
