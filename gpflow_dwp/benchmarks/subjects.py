"""What can be timed: training steps of models, and their floors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpflow_dwp.benchmarks._peer_child import regression_data
from gpflow_dwp.benchmarks.floor import Floor, floor_operations
from gpflow_dwp.benchmarks.shapes import Shape

if TYPE_CHECKING:
    from gpflow_dwp.layers import PosteriorFamily

__all__ = ["MODELS", "Subject", "prepare"]

MODELS = ("GW", "A", "AB", "A-whitened", "DGP")
"""Deep Wishart processes by posterior family, and the deep GP with the same prior."""


_FAMILIES: dict[str, PosteriorFamily] = {"GW": "GW", "A": "A", "AB": "AB", "A-whitened": "A"}


class Subject(NamedTuple):
    """One thing to time.

    :param model: One of :data:`MODELS`, or of :data:`~gpflow_dwp.benchmarks.peers.PEERS`.
    :param shape: Sizes of a step.
    :param dtype: "float64" or "float32".
    :param floor: Whether to time the step's dense linear algebra alone.
    """

    model: str
    shape: Shape
    dtype: str = "float64"
    floor: bool = False


def prepare(subject: Subject) -> Callable[[int], Any]:
    """Return what takes a number of steps and returns when they are done.

    It sets GPflow's default float.

    :param subject: One of this package's models, or its floor.
    """
    dtype = np.dtype(subject.dtype).type
    if subject.floor:
        operations = floor_operations(subject.shape, subject.model)
        return Floor(operations, subject.shape.num_samples, dtype).run

    import gpflow

    gpflow.config.set_default_float(dtype)
    import tensorflow as tf

    from gpflow_dwp.models import build_deep_gaussian_process, build_deep_wishart_process
    from gpflow_dwp.random import as_seed
    from gpflow_dwp.training import Adam, CompiledLoop

    data = regression_data(subject.shape.num_data, subject.shape.num_inputs)
    arguments: dict[str, Any] = {
        "num_inducing": subject.shape.num_inducing,
        "num_samples": subject.shape.num_samples,
    }
    if subject.model == "DGP":
        model = build_deep_gaussian_process(data, subject.shape.depth, **arguments)
    else:
        model = build_deep_wishart_process(
            data,
            subject.shape.depth,
            posterior=_FAMILIES[subject.model],
            whiten=subject.model == "A-whitened",
            **arguments,
        )
    tensors = tuple(tf.constant(part, dtype) for part in data)
    gpu = bool(tf.config.list_logical_devices("GPU"))
    loop = CompiledLoop(model, lambda: tensors, Adam(1e-3), 1_000, as_seed(0), jit_compile=gpu)
    return loop.run
