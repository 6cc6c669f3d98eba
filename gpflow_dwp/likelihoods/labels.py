"""Likelihoods of labels."""

from __future__ import annotations

import gpflow
from gpflow.likelihoods import Likelihood

__all__ = ["likelihood_of_labels"]


def likelihood_of_labels(num_classes: int) -> Likelihood:
    """Return a likelihood of class indices: Bernoulli for two classes, softmax for more.

    :param num_classes: Number of classes, C, at least 2; the softmax has as many latent functions.
    """
    if num_classes == 2:
        return gpflow.likelihoods.Bernoulli()
    return gpflow.likelihoods.Softmax(num_classes)
