"""Subjects that are this package's: training steps and predictions of models, and their floors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpflow_dwp.lab.benchmarks._peers import regression_data
from gpflow_dwp.lab.benchmarks.shapes import Shape, posterior_arguments

if TYPE_CHECKING:
    import tensorflow as tf

    from gpflow_dwp.models import DeepKernelProcess
    from gpflow_dwp.training.distribution import Split
    from gpflow_dwp.training.loop import CompiledLoop

__all__ = [
    "prepare_distributed_step",
    "prepare_floor",
    "prepare_lowered",
    "prepare_prediction",
    "prepare_step",
]


def prepare_floor(model: str | None, sizes: list[int], dtype: str) -> Callable[[int], None]:
    """Do the dense linear algebra alone of a training step; of ``predict_f``, if there is no model.

    :param model: One of :data:`WISHART_MODELS`.
    :param sizes: A :class:`Shape`, as all others here.
    """
    from gpflow_dwp.lab.benchmarks.floor import Floor, floor_operations, prediction_operations

    shape = Shape(*sizes)
    operations = floor_operations(shape, model) if model else prediction_operations(shape)
    return Floor(operations, shape.num_samples, dtype).run


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
    import tensorflow as tf

    if device is not None:
        _share_gpus(device)
    with tf.device(device):
        loop = _make_loop(model, Shape(*sizes), dtype, output=output, jit_compile=jit_compile)

    def run(times: int) -> None:
        loop.run(times)

    return run


def prepare_distributed_step(
    model: str, sizes: list[int], dtype: str, devices: int, split: Split
) -> Callable[[int], dict[str, Any]]:
    """Take training steps on several devices.

    :param devices: How many: GPUs where there are so many, else parts of the CPU, each with a
        thread.
    :param split: What is divided among them.
    """
    import tensorflow as tf

    kind = "GPU" if len(tf.config.list_physical_devices("GPU")) >= devices else "CPU"
    if kind == "CPU":
        tf.config.threading.set_inter_op_parallelism_threads(devices)
        [cpu] = tf.config.list_physical_devices("CPU")
        parts = [tf.config.LogicalDeviceConfiguration()] * devices
        tf.config.set_logical_device_configuration(cpu, parts)
    names = [f"{kind}:{number}" for number in range(devices)]
    strategy = tf.distribute.MirroredStrategy(names) if devices > 1 else None
    loop = _make_loop(model, Shape(*sizes), dtype, strategy, split)
    gradient_bytes = sum(each.dtype.size * each.shape.num_elements() for each in loop.variables)

    def run(times: int) -> dict[str, Any]:
        loop.run(times)
        return {"devices": names, "gradient_bytes": gradient_bytes}

    return run


def prepare_lowered(
    model: str, sizes: list[int], dtype: str
) -> Callable[[int], dict[str, int] | None]:
    """Count what XLA is given of a step of one of :data:`STEP_MODELS` where there is a GPU."""
    from gpflow_dwp.lab.benchmarks.lowered import lower_for_gpu

    built, data = _build(model, Shape(*sizes), dtype)
    return lambda times: lower_for_gpu(built, data)


def prepare_prediction(
    model: str, sizes: list[int], dtype: str, task: str
) -> Callable[[int], None]:
    """Predict at N rows.

    :param task: "predict_f" or "predict_y", by a posterior that is drawn before; "draws and
        predict_y", by a model, which draws first.
    """
    import tensorflow as tf

    built, (X, _) = _build(model, Shape(*sizes), dtype)
    num_samples = built.num_samples
    if task.startswith("predict_"):
        predict = tf.function(getattr(built.posterior(num_samples, seed=0), task))
    else:
        predict = tf.function(lambda X: built.predict_y(X, num_samples=num_samples))

    def run(times: int) -> None:
        for _ in range(times):
            mean, _ = predict(X)
        mean.numpy()

    return run


def _share_gpus(device: str) -> None:
    """Leave GPUs to the subjects that take turns, too; refuse one that is not there."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if device.startswith("GPU") and not gpus:  # TensorFlow would take the CPU without a word
        raise ValueError("there is no GPU that TensorFlow can use.")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)


def _make_loop(
    model: str,
    shape: Shape,
    dtype: str,
    strategy: tf.distribute.Strategy | None = None,
    split: Split = "rows",
    output: str = "pseudo_targets",
    jit_compile: bool = False,
) -> CompiledLoop:
    import contextlib

    from gpflow_dwp.objectives import Estimator
    from gpflow_dwp.random import as_seed
    from gpflow_dwp.training import Adam
    from gpflow_dwp.training.distribution import find_replicas
    from gpflow_dwp.training.loop import CompiledLoop

    with contextlib.nullcontext() if strategy is None else strategy.scope():
        built, data = _build(model, shape, dtype, output)
        optimizer = Adam(1e-3)
    return CompiledLoop(
        built,
        lambda: data,
        optimizer,
        1_000,
        as_seed(0),
        Estimator(),
        jit_compile=jit_compile,
        replicas=find_replicas(strategy, split, built),
    )


def _build(
    model: str, shape: Shape, dtype: str, output: str = "pseudo_targets"
) -> tuple[DeepKernelProcess, tuple[Any, Any]]:
    """A model and its data, as tensors; GPflow's default float is set."""
    import gpflow
    import numpy as np
    import tensorflow as tf

    from gpflow_dwp.models import build_deep_gaussian_process, build_deep_wishart_process

    gpflow.config.set_default_float(np.dtype(dtype).type)
    rows = regression_data(shape.num_data, shape.num_inputs)
    X, Y = (tf.constant(part, gpflow.default_float()) for part in rows)
    arguments: dict[str, Any] = {
        "num_inducing": shape.num_inducing,
        "num_samples": shape.num_samples,
        "output": output,
    }
    if model == "DGP":
        return build_deep_gaussian_process(rows, shape.depth, **arguments), (X, Y)
    arguments |= posterior_arguments(model)
    return build_deep_wishart_process(rows, shape.depth, **arguments), (X, Y)
