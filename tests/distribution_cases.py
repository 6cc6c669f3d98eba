"""The distributions of the package by name, with random parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
import tensorflow as tf

from gpflow_dwp import distributions

NAMES = [name for name in distributions.__all__ if isinstance(getattr(distributions, name), type)]
# Those with degrees of freedom that are an integer and no parameter.
GRAM_NAMES = [name for name in NAMES if name not in ("GeneralisedBartlett", "InverseWishart")]
every_name = pytest.mark.parametrize("name", NAMES)
"""All distributions of the package."""
CASES = [(1, 1), (4, 2), (3, 3), (3, 5)]
SEED = [11, 12]


def random_tril(size: int, *batch: int, seed: int = 0) -> np.ndarray:
    """Lower triangles with a positive diagonal that a seed fixes."""
    return reference.random_tril(np.random.default_rng(seed), *batch, size, size)


def make(name: str, parameters: dict[str, Any], df: int) -> Any:
    """The distribution of that name; df where it is an integer."""
    df_argument = (df,) if name in GRAM_NAMES else ()
    return getattr(distributions, name)(*df_argument, **parameters)


def random_parameters(
    name: str, size: int, df: int, batch: tuple[int, ...] = (), seed: int = 0
) -> dict[str, np.ndarray]:
    """All parameters but an integer df of the distribution of that name."""
    rng = np.random.default_rng(100 * seed + 10 * size + df)
    return reference.random_parameters(name, rng, size, df, batch)


def as_tensors(parameters: dict[str, np.ndarray], dtype: type = np.float64) -> dict[str, tf.Tensor]:
    """The same as constants."""
    return {name: tf.constant(value, dtype) for name, value in parameters.items()}


def mixing(name: str, parameters: dict[str, np.ndarray], size: int, df: int) -> list[np.ndarray]:
    """A and B."""
    row_mixing = parameters.get("row_mixing", parameters.get("scale_tril"))
    return [row_mixing, parameters.get("column_mixing_tril", np.eye(min(df, size)))]
