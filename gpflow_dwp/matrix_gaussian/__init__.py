"""Neural networks with matrix-variate Gaussian posteriors over their weights.

Louizos and Welling, "Structured and efficient variational deep learning with matrix Gaussian
posteriors" (2016).
"""

from gpflow_dwp.matrix_gaussian.layer import MatrixGaussianLayer
from gpflow_dwp.matrix_gaussian.network import (
    ACTIVATIONS,
    MatrixGaussianNetwork,
    build_matrix_gaussian_network,
)

__all__ = [
    "ACTIVATIONS",
    "MatrixGaussianLayer",
    "MatrixGaussianNetwork",
    "build_matrix_gaussian_network",
]
