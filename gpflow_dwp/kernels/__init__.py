"""Kernels of Gram matrices: GPflow's kernel objects, evaluated from inner products alone.

A hidden layer of a deep Wishart process has no features, only the Gram matrix that features would
have had. Any kernel that depends on its inputs through inner products, and so also through
distances, can be evaluated on it.
"""

from gpflow_dwp.kernels.gram import gram_K, gram_K_cross, gram_K_diag
from gpflow_dwp.kernels.of_inputs import LevelsMatern52, SeparableMatern52, additive_kernel
from gpflow_dwp.kernels.random_features import sample_random_functions

__all__ = [
    "LevelsMatern52",
    "SeparableMatern52",
    "additive_kernel",
    "gram_K",
    "gram_K_cross",
    "gram_K_diag",
    "sample_random_functions",
]
