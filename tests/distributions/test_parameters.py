"""What every distribution of the package does with its parameters."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from distribution_cases import (
    GRAM_NAMES,
    SEED,
    every_name,
    make,
    random_parameters,
)


@every_name
def test_slicing_and_copying(name: str) -> None:
    parameters = random_parameters(name, 3, 2, (4,))
    distribution = make(name, parameters, 2)
    names = list(parameters)
    assert list(type(distribution).parameter_properties()) == names
    for index in (0, slice(1, 3), Ellipsis):
        sliced = distribution[index]
        assert type(sliced) is type(distribution)
        for key in names:
            np.testing.assert_array_equal(getattr(sliced, key), parameters[key][index])
    copied = distribution.copy(**{names[0]: 2.0 * parameters[names[0]]})
    np.testing.assert_array_equal(getattr(copied, names[0]), 2.0 * parameters[names[0]])
    np.testing.assert_array_equal(
        getattr(copied, names[-1]),
        getattr(distribution, names[-1]) if len(names) > 1 else 2.0 * parameters[names[0]],
    )
    if name in GRAM_NAMES:
        assert sliced.df == copied.df == 2


@every_name
def test_pickles_and_deep_copies(name: str) -> None:
    parameters = {
        key: tf.Variable(value) for key, value in random_parameters(name, 3, 2, (2,)).items()
    }
    distribution = make(name, parameters, 2)
    # Used, so that TFP's bijectors have something in their caches.
    value = distribution.sample(seed=SEED)
    expected = distribution.log_prob(value).numpy()

    others = [pickle.loads(pickle.dumps(distribution)), copy.deepcopy(distribution)]

    for variable in parameters.values():
        variable.assign(tf.ones_like(variable) * np.nan)
    for other in others:
        assert type(other) is type(distribution)
        np.testing.assert_array_equal(other.sample(seed=SEED), value)
        np.testing.assert_allclose(other.log_prob(value), expected, rtol=1e-12)


@every_name
def test_variables_and_parameters_are_read_at_each_use(name: str) -> None:
    parameters = random_parameters(name, 3, 2)
    variables = {
        key: gpflow.Parameter(value) if key in ("loc", "rate", "scale_tril") else tf.Variable(value)
        for key, value in parameters.items()
    }
    distribution = make(name, variables, 2)
    value = distribution.sample(seed=SEED)
    others = random_parameters(name, 3, 2, seed=1)
    distribution.log_prob(value)
    for key, variable in variables.items():
        variable.assign(others[key])
    expected = make(name, others, 2)
    np.testing.assert_allclose(distribution.log_prob(value), expected.log_prob(value), rtol=1e-6)
    np.testing.assert_allclose(
        distribution.sample(seed=SEED), expected.sample(seed=SEED), atol=1e-12
    )
    np.testing.assert_allclose(distribution.mean(), expected.mean(), atol=1e-12)
    with tf.GradientTape() as tape:
        log_prob = distribution.log_prob(value)
    trainable = [variable for module in variables.values() for variable in _variables(module)]
    assert all(gradient is not None for gradient in tape.gradient(log_prob, trainable))


def _variables(parameter: Any) -> list[tf.Variable]:
    if isinstance(parameter, tf.Variable):
        return [parameter]
    return list(parameter.trainable_variables)
