"""What XLA is given of a training step where there is a GPU, found without one."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.base import RegressionData

from gpflow_dwp.models import VariationalModel
from gpflow_dwp.random import as_seed

__all__ = ["lower_for_gpu"]

_NO_WORK = ("constant", "get-tuple-element", "parameter", "tuple")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?\S+ = .*? ([a-z][\w-]*)\(", re.MULTILINE)


def lower_for_gpu(model: VariationalModel, data: RegressionData) -> dict[str, int] | None:
    """Lower a model's bound and its gradient for a GPU, which need not be there.

    :param model: The model, which is as it was afterwards.
    :param data: A batch, of the model's dtype.
    :return: Counts of instructions for XLA, before it fuses them: ``operations`` that compute
        something, with what is inside loops and branches; ``loops`` whose number of steps is known
        at run time only; ``branches``, of each of which one side is run. None where this TensorFlow
        is not built for GPUs.
    """
    if not tf.test.is_built_with_cuda():
        return None
    parameters = list(model.parameters)

    def bound_and_gradient(*inputs: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor | None]]:
        values, batch = inputs[: len(parameters)], inputs[len(parameters) :]
        with tf.GradientTape() as tape:
            tape.watch(values)
            with _taken_from(parameters, values):
                bound = model.elbo(batch, seed=as_seed(0))
        return bound, tape.gradient(bound, values)

    # Variables would have to be on the GPU.
    values = (parameter.unconstrained_variable.numpy() for parameter in parameters)
    specs = [tf.TensorSpec(np.shape(each), each.dtype) for each in (*values, *data)]
    compiled = tf.function(bound_and_gradient, jit_compile=True, autograph=False)
    text = compiled.experimental_get_compiler_ir(*specs)(stage="hlo", platform_name="GPU")
    counts = Counter(_INSTRUCTION.findall(text))
    operations = sum(count for kind, count in counts.items() if kind not in _NO_WORK)
    return {"operations": operations, "loops": counts["while"], "branches": counts["conditional"]}


@contextlib.contextmanager
def _taken_from(parameters: Sequence[Parameter], values: Sequence[tf.Tensor]) -> Iterator[None]:
    """Let parameters have given unconstrained values in place of those of their variables."""
    variables: list[Any] = [parameter.unconstrained_variable for parameter in parameters]
    try:
        for parameter, value in zip(parameters, values, strict=True):
            parameter._pretransformed_input = value
        yield
    finally:
        for parameter, variable in zip(parameters, variables, strict=True):
            parameter._pretransformed_input = variable
