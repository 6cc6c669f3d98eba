"""What likelihoods have in common whose density is a mixture of normals."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import tensorflow as tf
from gpflow.base import MeanAndVariance, TensorType

__all__ = ["NormalMixture"]


@runtime_checkable
class NormalMixture(Protocol):
    """A likelihood under which y, or a warp of it, is normal given one of K nodes."""

    def warped_components(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        """Return mean and variance of the K normals at each point, [K, ..., P] each.

        :param X: Inputs, [..., D].
        :param Fmu: Mean of the functions, [..., Q].
        :param Fvar: Variance of the functions, [..., Q].
        """

    def component_weights(self, dtype: tf.DType) -> tf.Tensor:
        """Return their weights, which sum to 1, [K]."""
