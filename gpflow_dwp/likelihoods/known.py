"""Which likelihoods are what their class says."""

from __future__ import annotations

from gpflow.likelihoods import Likelihood

__all__ = ["is_known"]


def is_known(likelihood: Likelihood, *kinds: type) -> bool:
    """Whether a likelihood is one of GPflow's or of this package's, of some kinds.

    What is known of a class, such as a closed form, need not be true of classes of a user's that
    inherit from it: their densities may be others.

    :param likelihood: The likelihood.
    :param kinds: Classes that it is of, or inherits from.
    """
    package = type(likelihood).__module__.partition(".")[0]
    return package in ("gpflow", "gpflow_dwp") and isinstance(likelihood, kinds)
