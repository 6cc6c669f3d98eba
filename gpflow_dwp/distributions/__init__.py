"""Wishart distributions, possibly singular, their generalised posteriors, and their inverses."""

from gpflow_dwp.distributions.a_generalised_singular_wishart import AGeneralisedSingularWishart
from gpflow_dwp.distributions.ab_generalised_singular_wishart import ABGeneralisedSingularWishart
from gpflow_dwp.distributions.generalised_bartlett import GeneralisedBartlett
from gpflow_dwp.distributions.generalised_singular_wishart import GeneralisedSingularWishart
from gpflow_dwp.distributions.inverse_wishart import InverseWishart
from gpflow_dwp.distributions.kullback_leibler import (
    expected_squared_norm,
    log_volume_over_minor,
    wishart_log_normaliser,
)
from gpflow_dwp.distributions.matrix_normal import expected_matrix_normal_kl, rank_one_root
from gpflow_dwp.distributions.singular_wishart import SingularWishart

__all__ = [
    "ABGeneralisedSingularWishart",
    "AGeneralisedSingularWishart",
    "GeneralisedBartlett",
    "GeneralisedSingularWishart",
    "InverseWishart",
    "SingularWishart",
    "expected_matrix_normal_kl",
    "expected_squared_norm",
    "log_volume_over_minor",
    "rank_one_root",
    "wishart_log_normaliser",
]
