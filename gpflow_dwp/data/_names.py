"""Names of classes and categories: what a table writes as 1 in one place and as 1.0 in another.

A column of integers with a missing cell is one of floats elsewhere, and then so are its names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Decimal

__all__ = ["as_known", "as_whole", "merge_whole"]

# Leading zeros and signs may be part of a name; long digits are none of a float's.
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,29})(\.\d{1,30})?([eE][+-]?\d{1,2})?", re.ASCII)


def as_whole(text: str) -> str | None:
    """Return a whole number without decimals, to the last digit; None for any other text.

    :param text: Of a cell.
    """
    if not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    return str(int(number)) if number == int(number) else None


def merge_whole(texts: Sequence[str]) -> list[str]:
    """Return names of cells: numbers without decimals where all are whole, else the texts.

    :param texts: Of a column's cells.
    """
    whole = [as_whole(text) for text in texts]
    names = [name for name in whole if name is not None]
    return names if len(names) == len(texts) else list(texts)


def as_known(text: str, known: Collection[str]) -> str:
    """Return the known name that a text stands for, or the text if it stands for none.

    :param text: Of a cell.
    :param known: Names that training saw.
    """
    whole = as_whole(text)
    if text in known or whole is None:
        return text
    return next((name for name in known if as_whole(name) == whole), text)
