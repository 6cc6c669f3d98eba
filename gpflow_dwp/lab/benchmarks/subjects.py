"""What can be timed: training steps of models, and their floors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from gpflow_dwp.lab.benchmarks._peer_child import regression_data
from gpflow_dwp.lab.benchmarks.floor import Floor, floor_operations, prediction_operations
from gpflow_dwp.lab.benchmarks.shapes import Shape

if TYPE_CHECKING:
    from gpflow_dwp.layers import PosteriorFamily
    from gpflow_dwp.models import DeepKernelProcess

__all__ = ["MODELS", "WISHART_MODELS", "Subject", "Task", "posterior_arguments", "prepare"]

MODELS = ("GW", "A", "AB", "A-whitened", "DGP")
"""Deep Wishart processes by posterior family, and the deep GP with the same prior."""


WISHART_MODELS = tuple(model for model in MODELS if model != "DGP")
"""The deep Wishart processes among them."""

_FAMILIES: dict[str, PosteriorFamily] = {"GW": "GW", "A": "A", "AB": "AB", "A-whitened": "A"}


Task = Literal["step", "predict_f", "predict_y", "draw_predict_y"]
"""What is timed."""


class Subject(NamedTuple):
    """One thing to time.

    :param model: One of :data:`MODELS`, or of :data:`~gpflow_dwp.lab.benchmarks.peers.PEERS`.
    :param shape: Sizes of a step.
    :param dtype: "float64" or "float32".
    :param floor: Whether to time the task's dense linear algebra alone.
    :param task: "step", a step of training; "predict_f" or "predict_y", predictions at N rows by a
        posterior that is drawn before; "draw_predict_y", by a model, which draws first.
    """

    model: str
    shape: Shape
    dtype: str = "float64"
    floor: bool = False
    task: Task = "step"

    def __str__(self) -> str:
        return f"{self.model} {'floor of ' if self.floor else ''}{self.task} {self.dtype}"


def prepare(subject: Subject) -> Callable[[int], Any]:
    """Return what does the task a number of times and returns when it is done.

    It sets GPflow's default float.

    :param subject: One of this package's models, or its floor.
    """
    dtype = np.dtype(subject.dtype).type
    if subject.floor:
        operations = (
            floor_operations(subject.shape, subject.model)
            if subject.task == "step"
            else prediction_operations(subject.shape)
        )
        return Floor(operations, subject.shape.num_samples, dtype).run

    import gpflow

    gpflow.config.set_default_float(dtype)
    X, Y = regression_data(subject.shape.num_data, subject.shape.num_inputs)
    model = _build(subject, (X, Y))
    return _steps(model, (X, Y)) if subject.task == "step" else _predictions(model, X, subject.task)


def posterior_arguments(model: str) -> dict[str, Any]:
    """Return the builder's arguments that make one of :data:`WISHART_MODELS`."""
    return {"posterior": _FAMILIES[model], "whiten": model == "A-whitened"}


def _build(subject: Subject, data: tuple[Any, Any]) -> DeepKernelProcess:
    from gpflow_dwp.models import build_deep_gaussian_process, build_deep_wishart_process

    arguments: dict[str, Any] = {
        "num_inducing": subject.shape.num_inducing,
        "num_samples": subject.shape.num_samples,
        "output": "pseudo_targets",
    }
    if subject.model == "DGP":
        return build_deep_gaussian_process(data, subject.shape.depth, **arguments)
    return build_deep_wishart_process(
        data, subject.shape.depth, **posterior_arguments(subject.model), **arguments
    )


def _steps(model: DeepKernelProcess, data: tuple[Any, Any]) -> Callable[[int], Any]:
    import tensorflow as tf
    from gpflow import default_float

    from gpflow_dwp.objectives import Estimator
    from gpflow_dwp.random import as_seed
    from gpflow_dwp.training import Adam, CompiledLoop

    tensors = (tf.constant(data[0], default_float()), tf.constant(data[1], default_float()))
    return CompiledLoop(model, lambda: tensors, Adam(1e-3), 1_000, as_seed(0), Estimator()).run


def _predictions(model: DeepKernelProcess, rows: Any, task: Task) -> Callable[[int], Any]:
    import tensorflow as tf
    from gpflow import default_float

    num_samples = model.num_samples
    X = tf.constant(rows, default_float())
    if task == "draw_predict_y":
        predict = tf.function(lambda X: model.predict_y(X, num_samples=num_samples))
    else:
        predict = tf.function(getattr(model.posterior(num_samples, seed=0), task))

    def run(times: int) -> None:
        for _ in range(times):
            mean, _ = predict(X)
        mean.numpy()

    return run
