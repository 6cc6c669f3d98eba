"""Wishart distributions, possibly singular, their generalised posteriors, and their inverses.

All are distributions of TensorFlow Probability: they pickle, slice, pass through ``tf.function``
with and without XLA, and have ``mean`` and ``kl_divergence``, the factor and the (inverse) Wisharts
``variance``, too.

A density is with respect to the entries that describe a matrix: G_ij with j ≤ min(i, R) for a Gram
matrix, of rank R, and T_ij with j ≤ i for a factor. TFP's element-wise bijectors (``Exp``,
``Scale``, ``Shift`` and the like) do not know that: applied to an [M, M] matrix they count M²
factors of the Jacobian, and so those of entries that are zero or repeated. Use bijectors of
matrices instead, such as :class:`gpflow_dwp.bijectors.SingularCongruence`: to scale G by c is the
congruence by √c I.
"""

# Imported for the divergences that it registers.
from gpflow_dwp.distributions import kullback_leibler  # noqa: F401
from gpflow_dwp.distributions.generalised_bartlett import GeneralisedBartlett
from gpflow_dwp.distributions.inverse_wishart import InverseWishart
from gpflow_dwp.distributions.wisharts import (
    ABGeneralisedSingularWishart,
    AGeneralisedSingularWishart,
    GeneralisedSingularWishart,
    SingularWishart,
)

__all__ = [
    "ABGeneralisedSingularWishart",
    "AGeneralisedSingularWishart",
    "GeneralisedBartlett",
    "GeneralisedSingularWishart",
    "InverseWishart",
    "SingularWishart",
]
