"""Checks of arguments that several benchmarks take."""

from __future__ import annotations

from collections.abc import Sequence

from gpflow_dwp.lab.benchmarks.shapes import SHAPES
from gpflow_dwp.validation import check_integers

__all__ = ["DTYPES", "check_arguments", "check_names"]

DTYPES = ("float64", "float32")


def check_arguments(
    shapes: Sequence[str],
    models: Sequence[str],
    dtypes: Sequence[str],
    *,
    known_models: Sequence[str],
    **counts: int,
) -> None:
    """Refuse unknown names, empty lists, and counts that are not positive integers."""
    for name, values, known in (
        ("shapes", shapes, tuple(SHAPES)),
        ("models", models, known_models),
        ("dtypes", dtypes, DTYPES),
    ):
        check_names(name, values, known)
    check_integers(**counts)


def check_names(name: str, values: Sequence[str], known: Sequence[str]) -> None:
    """Refuse an empty list, or one that holds an unknown name."""
    unknown = [value for value in values if value not in known]
    if unknown or not values:
        raise ValueError(f"{name} must be some of {', '.join(known)}, got {list(values)}.")
