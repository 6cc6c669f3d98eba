"""Which likelihood labels have."""

from __future__ import annotations

import pytest
from gpflow.likelihoods import Bernoulli, Softmax

from gpflow_dwp.likelihoods.labels import likelihood_of_labels


@pytest.mark.parametrize(("classes", "kind", "functions"), [(2, Bernoulli, 1), (3, Softmax, 3)])
def test_two_classes_have_one_function(classes: int, kind: type, functions: int) -> None:
    """Catches a softmax of two classes, which has a function too many."""
    likelihood = likelihood_of_labels(classes)
    assert type(likelihood) is kind
    assert (likelihood.latent_dim or 1) == functions
