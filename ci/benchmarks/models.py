"""What is measured of this package: training steps of models, and their linear algebra alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

WISHART_MODELS = ("GW", "A", "AB", "A-whitened")
STEP_MODELS = (*WISHART_MODELS, "DGP")
"""Deep Wishart processes by posterior family, and the deep GP with the same prior."""


class Shape(NamedTuple):
    """Sizes of one training step.

    :param num_data: N, rows of the batch.
    :param num_inputs: D, which is also the layers' ν.
    :param num_inducing: M.
    :param num_samples: Number of joint draws, S.
    :param depth: Number of GP layers of the equivalent deep GP.
    """

    num_data: int
    num_inputs: int
    num_inducing: int
    num_samples: int
    depth: int


SHAPES = {
    "yacht-2": Shape(277, 6, 100, 10, 2),
    "yacht-5": Shape(277, 6, 100, 10, 5),
    "protein-5": Shape(1_000, 9, 100, 10, 5),
    "large-3": Shape(1_000, 9, 500, 10, 3),
    "larger-3": Shape(2_000, 9, 1_000, 2, 3),
    "largest-3": Shape(4_000, 9, 2_000, 2, 3),
}
"""Those of yacht's training rows at two depths, of a batch of protein's, and of large models."""


def posterior_arguments(model: str) -> dict[str, Any]:
    """Return the builder's arguments that make one of :data:`WISHART_MODELS`."""
    family, _, whitened = model.partition("-")
    return {"posterior": family, "whiten": bool(whitened)}


def prepare_floor(
    model: str, sizes: list[int], dtype: str, library: str = "LAPACK"
) -> Callable[[int], None]:
    """Do the dense linear algebra alone of a training step.

    :param model: One of :data:`WISHART_MODELS`.
    :param sizes: A :class:`Shape`, as below.
    :param library: "LAPACK" or "TensorFlow".
    """
    from benchmarks.floor import Floor, floor_operations, tensorflow_floor

    shape = Shape(*sizes)
    if library == "TensorFlow":
        return tensorflow_floor(floor_operations(shape, model), dtype)
    return Floor(floor_operations(shape, model), shape.num_samples, dtype).run


def prepare_step(
    model: str,
    sizes: list[int],
    dtype: str,
    output: str = "pseudo_targets",
    device: str | None = None,
    jit_compile: bool = False,
) -> Callable[[int], None]:
    """Take training steps of one of :data:`STEP_MODELS`.

    :param output: That of the builders.
    :param device: Where; None for where TensorFlow puts the model.
    :param jit_compile: Whether XLA compiles them.
    """
    import gpflow
    import numpy as np
    import tensorflow as tf
    from benchmarks.peers import regression_data

    from gpflow_dwp.models import build_deep_gaussian_process, build_deep_wishart_process
    from gpflow_dwp.random import as_seed
    from gpflow_dwp.training import Adam
    from gpflow_dwp.training._batches import make_batches
    from gpflow_dwp.training.loop import CompiledLoop

    gpus = tf.config.list_physical_devices("GPU")
    if (device or "").startswith("GPU") and not gpus:  # TensorFlow would take the CPU silently
        raise ValueError("there is no GPU that TensorFlow can use.")
    for gpu in gpus if device else ():
        tf.config.experimental.set_memory_growth(gpu, True)  # subjects share it
    gpflow.config.set_default_float(np.dtype(dtype).type)
    shape = Shape(*sizes)
    rows = regression_data(shape.num_data, shape.num_inputs)
    arguments: dict[str, Any] = {
        "num_inducing": shape.num_inducing,
        "num_samples": shape.num_samples,
        "output": output,
    }
    with tf.device(device):
        data = tuple(tf.constant(part, gpflow.default_float()) for part in rows)
        if model == "DGP":
            built = build_deep_gaussian_process(rows, shape.depth, **arguments)
        else:
            arguments |= posterior_arguments(model)
            built = build_deep_wishart_process(rows, shape.depth, **arguments)
        loop = CompiledLoop(
            built,
            make_batches(built, data, len(rows[0]), lambda num_rows: None, 0),
            Adam(1e-3),
            1_000,
            as_seed(0),
            jit_compile=jit_compile,
        )

    def run(times: int) -> None:
        loop.run(times)

    return run
