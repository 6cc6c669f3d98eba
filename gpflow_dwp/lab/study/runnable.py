"""What is run in a process of its own and kept under a key: a cell of a study or a comparison."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from gpflow_dwp.validation import check_integers

__all__ = ["RunnableCell", "check_each_once", "check_split", "sorted_pairs"]

_Self = TypeVar("_Self", bound="RunnableCell")


class RunnableCell:
    """Everything that decides the result of one run; a frozen dataclass.

    Its fields are plain values, or arguments by name as :func:`sorted_pairs`.

    :cvar runs: Module and function, ``"module:function"``, that take what :meth:`to_dict` gives,
        the paths of :meth:`files` and ``checkpoint_directory``, ``uci_folder`` and ``report`` of
        :func:`~gpflow_dwp.lab.study.execution.run_cell`, and return the metrics.
    :cvar place: The fields that tell cells of this kind from others.
    :cvar packages: Distributions whose versions a result should tell, besides those of all.
    """

    runs: ClassVar[str]
    place: ClassVar[tuple[str, ...]]
    packages: ClassVar[tuple[str, ...]] = ()

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits that tell this cell from every other; a file's name."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """The cell in a few words."""
        raise NotImplementedError

    @property
    def dtype(self) -> str:
        """Precision of the computation."""
        return "float64"

    @property
    def num_steps(self) -> int | None:
        """How many steps it reports, of which it leaves a curve; None for neither."""
        return None

    def files(self, directory: Path) -> dict[str, Path]:
        """Return where its function writes, by names of arguments, besides its checkpoints."""
        return {} if self.num_steps is None else {"curve": directory / "curves" / f"{self.key}.csv"}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {n: dict(value) if isinstance(value, tuple) else value for n, value in told.items()}

    @classmethod
    def from_dict(cls: type[_Self], values: Mapping[str, Any]) -> _Self:
        """Return the inverse of :meth:`to_dict`.

        :raises ValueError: If a field is missing, unknown or cannot be used.
        """
        known = fields(cls)  # type: ignore[arg-type]
        unknown = sorted(set(values) - {field.name for field in known})
        needed = {field.name for field in known if field.default is MISSING}
        missing = sorted(needed - set(values))
        if unknown or missing:
            raise ValueError(f"a cell has unknown fields {unknown}, missing fields {missing}.")
        return cls(
            **{n: sorted_pairs(v) if isinstance(v, Mapping) else v for n, v in values.items()}
        )


def sorted_pairs(values: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Arguments by name as sorted pairs of name and value, which a cell can have as a field."""
    return tuple(sorted(values.items()))


def check_each_once(**arguments: Sequence[Any]) -> None:
    """Refuse sequences that are empty, or that hold something twice.

    :param arguments: Sequences by the names that the caller gave them.
    :raises ValueError: If there is one; the message names it.
    """
    for name, values in arguments.items():
        if not values or len(set(values)) < len(values):
            raise ValueError(f"{name} must hold each of at least one value once, got {values}.")


def check_split(split: int, num_splits: int, where: str) -> None:
    """Refuse a number of a split that there is not.

    :param where: The name of the table.
    :raises ValueError: If it is no such number.
    """
    check_integers(at_least=0, split=split)
    if split >= num_splits:
        raise ValueError(
            f"split must be an integer from 0 to {num_splits - 1} for {where}, got {split}."
        )
