"""What XLA is given of a training step where there is a GPU, found without one."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.base import RegressionData

from gpflow_dwp.models import VariationalModel
from gpflow_dwp.random import as_seed

__all__ = ["Lowered", "lower_for_gpu"]

_NO_WORK = ("constant", "get-tuple-element", "parameter", "tuple")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?\S+ = .*? ([a-z][\w-]*)\(", re.MULTILINE)


class Lowered(NamedTuple):
    """Counts of a bound's and its gradient's instructions for XLA, before it fuses them.

    :param operations: Those that compute something, with what is inside loops and branches.
    :param loops: Loops whose number of steps is known at run time only.
    :param branches: Of each, one side is run.
    """

    operations: int
    loops: int
    branches: int


def lower_for_gpu(model: VariationalModel, data: RegressionData) -> Lowered:
    """Lower a model's bound and its gradient for a GPU, which need not be there.

    :param model: The model, which is as it was afterwards.
    :param data: A batch, of the model's dtype.
    :raises ValueError: If this TensorFlow is not built for GPUs.
    """
    if not tf.test.is_built_with_cuda():
        raise ValueError("TensorFlow must be built for GPUs to lower a step for one.")
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
    return Lowered(operations, counts["while"], counts["conditional"])


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
