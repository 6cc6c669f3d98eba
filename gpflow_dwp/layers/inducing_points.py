"""Inducing inputs, as models and layers are given them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints

from gpflow_dwp.data.array_checks import check_matrix

__all__ = ["as_inducing_points"]


def as_inducing_points(
    inducing_variable: InducingPoints | npt.NDArray[np.float64] | tf.Tensor,
) -> InducingPoints:
    """Make GPflow's inducing points of a matrix.

    :param inducing_variable: Inducing inputs, Z, [M, D]; or inducing points, which are returned as
        they are.
    :raises ValueError: If Z is not a matrix of finite numbers.
    """
    points = getattr(inducing_variable, "Z", inducing_variable)
    Z = check_matrix("inducing_variable", points)
    return inducing_variable if isinstance(inducing_variable, InducingPoints) else InducingPoints(Z)
