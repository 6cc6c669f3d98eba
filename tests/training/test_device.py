"""Where training runs: beside the model's variables."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.models import build_deep_wishart_process
from gpflow_dwp.training._batches import are_on_gpu


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
    with tf.device("CPU:0"):
        assert not are_on_gpu([tf.Variable(0.0)])


def test_products_in_single_precision_are_no_less_precise() -> None:
    """TensorFlow's default on GPUs is: Gram matrices differ by 4e-4 from those of their kernels."""
    build_deep_wishart_process((np.eye(2), np.eye(2)), 1)

    assert not tf.config.experimental.tensor_float_32_execution_enabled()


TWO_DEVICES = """
import numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from gpflow_dwp import build_deep_wishart_process, fit

X = np.random.default_rng(0).normal(size=(6, 2))
for jit_compile in (False, True):
    with tf.device("CPU:1"):
        model = build_deep_wishart_process((X, X[:, :1]), 1, num_inducing=3)
    history = fit(
        model, (X, X[:, :1]), 1, jit_compile=jit_compile, progress=False
    )
    assert np.isfinite(history.elbo).all()
"""


@pytest.mark.slow
def test_two_devices() -> None:
    """XLA takes no variable from elsewhere: all of a run is on the second device, as its model."""
    subprocess.run([sys.executable, "-c", TWO_DEVICES], check=True)
