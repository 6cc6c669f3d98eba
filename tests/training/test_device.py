"""Where training runs: beside the model's variables, with XLA on a GPU only, in one replica."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit
from gpflow_dwp.training import Adam, NaturalGradientAdam
from gpflow_dwp.training._device import are_on_gpu, beside


def on(*devices: str) -> Any:
    """Stand-ins for variables on devices."""
    return [
        SimpleNamespace(device=f"/job:localhost/replica:0/task:0/device:{device}")
        for device in devices
    ]


def test_only_a_whole_model_is_on_a_gpu() -> None:
    assert are_on_gpu(on("GPU:0", "GPU:0"))
    assert not are_on_gpu(on("GPU:0", "CPU:0"))
    assert not are_on_gpu(on("CPU:0"))
    assert not are_on_gpu([tf.Variable(0.0)])


def test_a_model_on_several_devices_has_no_place() -> None:
    with tf.device("CPU:0"), beside(on("GPU:0", "CPU:0")):
        assert tf.Variable(0.0).device.endswith("CPU:0")


def test_a_gpu_beside_a_model_on_the_cpu_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    original = tf.function

    def recording(*arguments: Any, jit_compile: bool | None = None, **others: Any) -> Any:
        compiled.append(jit_compile)
        return original(*arguments, jit_compile=jit_compile, **others)

    monkeypatch.setattr(tf, "function", recording)
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind=None: ["a device"])

    fit(tiny_model(1), toy_data(), 1, progress=False)

    assert compiled and not any(compiled)


@pytest.mark.parametrize(
    "optimizer", [Adam(), NaturalGradientAdam([])], ids=lambda optimizer: type(optimizer).__name__
)
def test_several_replicas_are_refused(
    optimizer: Adam | NaturalGradientAdam, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = tf.Variable([1.0], dtype=tf.float64)
    optimizer.build([variable])
    monkeypatch.setattr(
        tf.distribute, "get_strategy", lambda: SimpleNamespace(num_replicas_in_sync=2)
    )

    refused = f"{type(optimizer).__name__} must be used outside a distribution strategy"
    with pytest.raises(ValueError, match=refused):
        optimizer.build([variable])
    with pytest.raises(ValueError, match=refused):
        optimizer.apply_gradients([(tf.ones_like(variable), variable)])
    np.testing.assert_array_equal(variable, [1.0])


TWO_DEVICES = """
import numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.training import Adam

X = np.random.default_rng(0).normal(size=(6, 2))
for jit_compile in (False, True):
    with tf.device("CPU:1"):
        model = build_deep_wishart_process((X, X[:, :1]), 1, num_inducing=3)
    history = fit(
        model, (X, X[:, :1]), 1, jit_compile=jit_compile, progress=False
    )
    assert np.isfinite(history.elbo).all()

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
optimizer, plain = Adam(), tf.Variable([1.0])
optimizer.build([plain])
with strategy.scope():
    variable = tf.Variable([1.0])
for use in (
    lambda: strategy.run(lambda: optimizer.apply_gradients([(tf.ones([1]), variable)])),
    lambda: tf.function(strategy.run)(
        lambda: optimizer.apply_gradients([(tf.ones([1]), variable)])
    ),
):
    try:
        use()
    except ValueError as error:
        assert "got a MirroredStrategy of 2" in str(error), error
    else:
        raise AssertionError("replicas were stepped apart")
"""


@pytest.mark.slow
def test_two_devices() -> None:
    """XLA takes no variable from elsewhere: all of a run is on the second device, as its model."""
    subprocess.run([sys.executable, "-c", TWO_DEVICES], check=True)
