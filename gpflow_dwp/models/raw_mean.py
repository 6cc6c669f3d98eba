"""Mean functions in raw units."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.functions import MeanFunction
from gpflow.utilities import deepcopy

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.models.deep_kernel_process import DeepKernelProcess
from gpflow_dwp.validation import check_instance

__all__ = ["RawMean", "set_mean"]


class RawMean(MeanFunction):
    """A mean function of raw inputs and outputs, in those of a model.

    :param mean_function: From [N, E] to [N, P], in raw units.
    :param input_mean: What is 0 in the model's inputs, [E].
    :param input_scale: What is 1 more, [E].
    :param output_scale: The same, of outputs, [P]; 0 is 0.
    """

    def __init__(
        self,
        mean_function: MeanFunction,
        input_mean: Array,
        input_scale: Array,
        output_scale: Array,
    ) -> None:
        super().__init__()
        self.mean_function, self.output_scale = mean_function, output_scale
        self.input_mean, self.input_scale = input_mean, input_scale

    def __call__(self, X: TensorType) -> tf.Tensor:
        X = tf.convert_to_tensor(X)
        mean, scale, output = (
            tf.cast(part, X.dtype)
            for part in (self.input_mean, self.input_scale, self.output_scale)
        )
        return self.mean_function(X * scale + mean) / output

    @staticmethod
    def check(given: Any, X: Array, Y: Array) -> Array:
        """Return what a mean function is at raw inputs, [N, P].

        :raises ValueError: If it is none of GPflow's, or not of the outputs' shape, or not finite.
        """
        check_instance(MeanFunction, mean_function=given)
        found = np.asarray(given(X))
        if found.shape != Y.shape or not np.isfinite(found).all():
            raise ValueError(
                f"mean_function must return finite numbers {list(Y.shape)}, of raw inputs, got "
                f"shape {list(found.shape)}."
            )
        return found

    @classmethod
    def of(cls, given: MeanFunction, inputs: Standardiser, outputs: Standardiser) -> RawMean:
        """A copy of a mean function, as it is given, in the units of two standardisers."""
        fixed = deepcopy(given)
        gpflow.set_trainable(fixed, False)
        return cls(fixed, inputs.mean, inputs.scale, outputs.scale)


def set_mean(model: DeepKernelProcess, mean: RawMean) -> None:
    """Give a mean function to a model that was trained on what is left of the targets."""
    layer = model.output_layer
    layer.mean_function = mean
    if isinstance(layer, RegressionGPLayer):
        layer.targets.assign(layer.targets + mean(layer.inputs))
