"""Neural networks with matrix-variate Gaussian posteriors over their weights.

Louizos and Welling, "Structured and efficient variational deep learning with matrix Gaussian
posteriors" (2016).
"""

from gpflow_dwp.matrix_gaussian._covariance_root import CovarianceFamily
from gpflow_dwp.matrix_gaussian.builder import build_matrix_gaussian_network
from gpflow_dwp.matrix_gaussian.layer import (
    MatrixGaussianLayer,
    Preactivation,
    dropout_kl,
)
from gpflow_dwp.matrix_gaussian.matrix_normal import expected_matrix_normal_kl, rank_one_root
from gpflow_dwp.matrix_gaussian.network import (
    ACTIVATIONS,
    Activation,
    MatrixGaussianNetwork,
    NetworkPosterior,
)

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "CovarianceFamily",
    "MatrixGaussianLayer",
    "MatrixGaussianNetwork",
    "NetworkPosterior",
    "Preactivation",
    "build_matrix_gaussian_network",
    "dropout_kl",
    "expected_matrix_normal_kl",
    "rank_one_root",
]
