"""A user's mistake, as opposed to ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["UsageError", "user_mistakes"]


class UsageError(Exception):
    """Something that the user gave cannot be used; shown as one line, with exit code 2."""


@contextlib.contextmanager
def user_mistakes() -> Iterator[None]:
    """Report errors of the kinds that bad input causes as a :class:`UsageError`."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        raise UsageError(str(error)) from error
