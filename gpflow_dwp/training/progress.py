"""Bars that show how training gets on."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar

__all__ = ["bounds_in_raw_units", "is_watched", "shown_bound"]

_OFFSET: ContextVar[float] = ContextVar("offset", default=0.0)


def is_watched() -> bool:
    """Whether somebody can see a bar: on a terminal or in a notebook, not in a file or a pipe."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextlib.contextmanager
def bounds_in_raw_units(offset: float) -> Iterator[None]:
    """Let bars show bounds per datum as tables of scores do, in the unit of the data.

    :param offset: What is added to a bound of standardised data: see
        :attr:`gpflow_dwp.data.Standardiser.log_density_offset`.
    """
    token = _OFFSET.set(offset)
    try:
        yield
    finally:
        _OFFSET.reset(token)


def shown_bound(bound: float) -> str:
    """What a bar says of a bound per datum."""
    return f"ELBO per datum {bound + _OFFSET.get():.3f}"
