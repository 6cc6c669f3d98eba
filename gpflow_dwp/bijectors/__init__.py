"""Bijectors between the factors and matrices of the generalised (singular) Wisharts.

Their log-determinants count the entries that describe a matrix, j ≤ min(i, R), each once; those of
TFP's element-wise bijectors count all M² entries of an [M, M] matrix.
"""

from gpflow_dwp.bijectors.congruence import (
    SingularCongruence,
    TallCholeskyOuterProduct,
    TriangularCongruence,
)
from gpflow_dwp.bijectors.triangular import ColumnScaledTril, RightTriangularProduct

__all__ = [
    "ColumnScaledTril",
    "RightTriangularProduct",
    "SingularCongruence",
    "TallCholeskyOuterProduct",
    "TriangularCongruence",
]
