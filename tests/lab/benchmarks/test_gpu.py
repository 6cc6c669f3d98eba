"""Steps on a GPU beside those on the CPU."""

from __future__ import annotations

import pytest
import tensorflow as tf

from gpflow_dwp.lab.benchmarks import gpu
from gpflow_dwp.lab.benchmarks.gpu import benchmark_gpu
from gpflow_dwp.lab.benchmarks.measurement import Subject, Timings
from gpflow_dwp.lab.benchmarks.shapes import SHAPES
from gpflow_dwp.lab.benchmarks.subjects import prepare_step


def test_what_is_timed_is_over_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a ratio upside down, and devices that are mixed up."""

    def measured(subjects: list[Subject], **_: object) -> dict[str, Timings]:
        seconds = {("CPU:0", False): 4.0, ("GPU:0", False): 1.0, ("GPU:0", True): 2.0}
        return {s.title: Timings([seconds[s.arguments[-2:]]], [1.0], 3.0) for s in subjects}

    monkeypatch.setattr(gpu, "measure", measured)

    result = benchmark_gpu(shapes=("yacht-2",), report=lambda _: None)["yacht-2"]

    assert {figure.name: figure.value for figure in result.figures[:5]} == {
        "GPU / CPU": 0.25,
        "GPU with XLA / CPU": 0.5,
        "CPU, ms": 4e3,
        "GPU, ms": 1e3,
        "GPU with XLA, ms": 2e3,
    }


def test_steps_are_taken_on_the_device_that_is_named() -> None:
    shape = SHAPES["yacht-2"]._replace(num_data=5, num_inducing=3, num_samples=1)

    prepare_step("AB", list(shape), "float64", device="CPU:0")(2)
    if not tf.config.list_physical_devices("GPU"):
        with pytest.raises(ValueError, match="no GPU"):
            prepare_step("AB", list(shape), "float64", device="GPU:0")
