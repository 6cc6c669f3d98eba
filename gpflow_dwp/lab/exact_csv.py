"""Numbers of a CSV file to their last digit."""

from __future__ import annotations

from os import PathLike
from typing import Any

import pandas as pd

__all__ = ["read_exact_csv"]

# From pandas 3.1 on it is exact by itself, and warns of the option.
_EXACT: dict[str, Any] = {"float_precision": "round_trip"}
if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1):
    _EXACT = {}


def read_exact_csv(path: str | PathLike[str], **options: Any) -> pd.DataFrame:
    """Read what ``DataFrame.to_csv`` wrote, such that writing it again changes nothing.

    :param options: Of ``pandas.read_csv``.
    """
    return pd.read_csv(path, **_EXACT, **options)
