"""Gradients of every distribution of the package, against difference quotients."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import tensorflow as tf
from distribution_cases import SEED, every_name, make, random_parameters
from model_reference import assert_gradients_are_finite_differences


@every_name
@pytest.mark.parametrize(("size", "df"), [(4, 2), (3, 5)])
def test_gradients_of_densities_and_samples(name: str, size: int, df: int) -> None:
    """Densities by all parameters and by a value that stays of rank R; samples by all but those of
    Gamma variables, whose rejection sampler may change its mind, and which have own tests."""
    variables = {key: tf.Variable(it) for key, it in random_parameters(name, size, df).items()}
    distribution, rng = make(name, variables, df), np.random.default_rng(5)
    rank = size if name == "InverseWishart" else min(size, df)
    factor = tf.Variable(reference.random_tril(rng, size, rank))
    weights = rng.normal(size=distribution.event_shape)

    def log_prob() -> tf.Tensor:
        is_gram = name != "GeneralisedBartlett"
        return distribution.log_prob(factor @ tf.transpose(factor) if is_gram else factor)

    def weighted_sample() -> tf.Tensor:
        return tf.reduce_sum(weights * distribution.sample(2, seed=SEED))

    assert_gradients_are_finite_differences(log_prob, [*variables.values(), factor])
    for key in ("concentration", "df"):
        variables.pop(key, None)
    assert_gradients_are_finite_differences(weighted_sample, [*variables.values()])
