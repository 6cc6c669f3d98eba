"""Bijectors between the factors and matrices of the generalised (singular) Wisharts.

Their log-determinants count the entries that describe a matrix, j ≤ min(i, R), each once; those of
TFP's element-wise bijectors count all M² entries of an [M, M] matrix.
"""

from gpflow_dwp.bijectors.column_scaled_tril import ColumnScaledTril
from gpflow_dwp.bijectors.right_triangular_product import RightTriangularProduct
from gpflow_dwp.bijectors.singular_congruence import SingularCongruence, TriangularCongruence
from gpflow_dwp.bijectors.tall_cholesky_outer_product import TallCholeskyOuterProduct

__all__ = [
    "ColumnScaledTril",
    "RightTriangularProduct",
    "SingularCongruence",
    "TallCholeskyOuterProduct",
    "TriangularCongruence",
]
