"""Square roots of a layer's row and column covariances, with more or fewer parameters."""

from __future__ import annotations

from typing import Literal

import gpflow
import numpy as np
import tensorflow as tf
from gpflow import Parameter, default_float
from gpflow.utilities import positive, triangular

from gpflow_dwp.matrix_gaussian.matrix_normal import rank_one_root

__all__ = ["CovarianceFamily", "CovarianceRoot", "times_root"]

CovarianceFamily = Literal["diagonal", "rank_one", "full"]
"""How many parameters the square root of a row or column covariance has."""


class CovarianceRoot(gpflow.Module):
    """The square root of a covariance, that starts at the identity."""

    def __init__(
        self, name: str, family: CovarianceFamily, size: int, rng: np.random.Generator
    ) -> None:
        super().__init__(name="CovarianceRoot")
        dtype = default_float()
        self.family = family
        if family == "full":
            self.tril = Parameter(np.eye(size), dtype=dtype, transform=triangular())
        elif family in ("diagonal", "rank_one"):
            self.diagonal = Parameter(
                np.ones(size), dtype=dtype, transform=positive(base="exp", lower=0.0)
            )
        else:
            raise ValueError(f"{name} must be diagonal, rank_one or full, got {family!r}.")
        if family == "rank_one":
            # At zero the gradient of u uᵀ is zero.
            self.direction = Parameter(rng.normal(scale=0.01, size=size), dtype=dtype)

    def operator(self) -> tf.linalg.LinearOperator:
        """The present root."""
        if self.family == "full":
            return tf.linalg.LinearOperatorLowerTriangular(tf.convert_to_tensor(self.tril))
        diagonal = tf.convert_to_tensor(self.diagonal)
        if self.family == "diagonal":
            return tf.linalg.LinearOperatorDiag(diagonal, is_positive_definite=True)
        return rank_one_root(diagonal, tf.convert_to_tensor(self.direction))


def times_root(A: tf.Tensor, root: tf.linalg.LinearOperator) -> tf.Tensor:
    """A R, whose rows have the inner products A U Aᵀ."""
    if isinstance(root, tf.linalg.LinearOperatorDiag):
        return A * root.diag
    return tf.linalg.matrix_transpose(root.matmul(tf.linalg.matrix_transpose(A), adjoint=True))
