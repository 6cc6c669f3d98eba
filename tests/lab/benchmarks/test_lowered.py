"""The bound and gradient of models as XLA is given them where there is a GPU."""

from __future__ import annotations

import gpu_steps
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.lab.benchmarks.lowered import lower_for_gpu

pytestmark = pytest.mark.skipif(
    not tf.test.is_built_with_cuda(), reason="this TensorFlow is not built for GPUs"
)


@pytest.mark.parametrize(
    ("name", "factorisations"), [("regression", 4), ("whitened, sampled log ratios", 2)]
)
def test_only_failed_factorisations_have_loops(name: str, factorisations: int) -> None:
    """Catches what XLA cannot compile for a GPU, and what it makes a loop of, step by step."""
    model = gpu_steps.MODELS[name].model()
    before = [parameter.numpy() for parameter in model.parameters]

    lowered = lower_for_gpu(model, (gpu_steps.X, gpu_steps.REAL))

    assert lowered is not None
    assert lowered["loops"] == lowered["branches"] == factorisations
    assert lowered["operations"] > 1_000
    for parameter, value in zip(model.parameters, before, strict=True):
        np.testing.assert_array_equal(parameter, value)


def test_tensorflow_without_gpus_has_no_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: False)

    assert lower_for_gpu(gpu_steps.MODELS["AB"].model(), (gpu_steps.X, gpu_steps.REAL)) is None
