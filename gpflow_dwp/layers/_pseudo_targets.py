"""The parameters of every global-inducing posterior."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import Parameter, default_float

from gpflow_dwp.bijectors import ColumnScaledTril
from gpflow_dwp.data.array_checks import check_matrix
from gpflow_dwp.validation import check_positive

__all__ = ["pseudo_target_parameters"]


def pseudo_target_parameters(
    pseudo_targets: npt.NDArray[np.float64] | tf.Tensor, precision: float
) -> tuple[Parameter, Parameter]:
    """Make the parameters v, [M, Q], and L, [M, M], of N(v; u, Λ⁻¹) with Λ = L Lᵀ.

    :param pseudo_targets: Starting value of v.
    :param precision: Starting value of Λ: a positive number times the identity.
    :raises ValueError: If ``pseudo_targets`` is not a matrix of finite numbers, or ``precision`` is
        not positive.
    """
    check_positive(precision=precision)
    pseudo_targets = check_matrix("pseudo_targets", pseudo_targets)
    precision_tril = np.sqrt(precision) * np.eye(len(pseudo_targets))
    transform = tfp.bijectors.Chain([ColumnScaledTril(), tfp.bijectors.FillTriangular()])
    return (
        Parameter(pseudo_targets, dtype=default_float()),
        Parameter(precision_tril, dtype=default_float(), transform=transform),
    )
