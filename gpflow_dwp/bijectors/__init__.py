"""Bijectors between the factors and matrices of the generalised (singular) Wisharts."""

from gpflow_dwp.bijectors.column_scaled_tril import ColumnScaledTril
from gpflow_dwp.bijectors.right_triangular_product import RightTriangularProduct
from gpflow_dwp.bijectors.singular_congruence import SingularCongruence
from gpflow_dwp.bijectors.tall_cholesky_outer_product import TallCholeskyOuterProduct

__all__ = [
    "ColumnScaledTril",
    "RightTriangularProduct",
    "SingularCongruence",
    "TallCholeskyOuterProduct",
]
