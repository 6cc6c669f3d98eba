"""What golden numbers are made from: a table, small models, and variables that have been moved.

Variables are told apart by their shapes and sizes alone, and moved from where they start by what
their shapes say: what they are called, and their order in a module, changes no number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from gpflow_dwp import (
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
    build_latent_variable_deep_gp,
    build_matrix_gaussian_network,
)

wishart, gaussian = build_deep_wishart_process, build_deep_gaussian_process
inverse, latent = build_deep_inverse_wishart_process, build_latent_variable_deep_gp
network = build_matrix_gaussian_network
KERNEL_PROCESSES = {"wishart": wishart, "gaussian": gaussian, "inverse": inverse}
SMALL: dict[str, Any] = {"num_inducing": 5, "output": "pseudo_targets"}


def by_size(name: str, values: Iterable[Any]) -> dict[str, Any]:
    """Arrays whose order says nothing, named by their place in order of shapes and norms."""
    arrays = sorted(
        (np.asarray(value) for value in values),
        key=lambda array: (array.shape, round(float(np.linalg.norm(array)), 6), array.sum()),
    )
    return {f"{name} {n:02}": array for n, array in enumerate(arrays)}


def move(module: tf.Module) -> None:
    """Move every variable from where it starts, by what its shape alone says."""
    for variable in module.trainable_variables:
        steps = 0.1 * np.cos(1.0 + np.arange(np.prod(variable.shape, dtype=int)))
        variable.assign_add(tf.cast(steps.reshape(variable.shape), variable.dtype))


def inputs(num: int, seed: int) -> np.ndarray:
    """Two columns, of which float32 holds all digits."""
    X = np.random.default_rng(seed).normal(size=(num, 2))
    return X.astype(np.float32).astype(np.float64)


def functions(X: np.ndarray) -> np.ndarray:
    """Three smooth columns, with noise that is a function of X."""
    weights = np.array([[1.0, -0.5, 0.3], [0.4, 1.0, -1.2]])
    return np.sin(2.0 * X @ weights) + 0.1 * np.cos(97.0 * X @ weights)


OBSERVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "one": lambda f: f[:, :1],
    "three": lambda f: f,
    "positive": lambda f: np.exp(f[:, :1]),
    "binary": lambda f: (f[:, :1] > 0.0).astype(float),
    "label": lambda f: np.argmax(f, 1)[:, None].astype(float),
    "count": lambda f: np.round(2.0 + 2.0 * f[:, :1]).clip(0.0),
}
X, XNEW = inputs(14, seed=0), inputs(3, seed=1)
