"""What every distribution of the package does with its parameters."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import gpflow
import numpy as np
import pytest
import reference
import tensorflow as tf
from distribution_cases import (
    GRAM_NAMES,
    SEED,
    every_name,
    make,
    random_parameters,
)

from gpflow_dwp import distributions


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
    read = tape.watched_variables()
    assert len(read) == len(variables)
    assert all(gradient is not None for gradient in tape.gradient(log_prob, read))


GOOD = {"df": 2, **reference.wishart_bartlett(3, 2)}
GOOD |= {"scale_tril": np.eye(3), "row_mixing": np.eye(3), "column_mixing_tril": np.eye(2)}
BAD: dict[str, list[Any]] = {
    "df": [0, -1, 1.5, True, "2", None, np.nan],
    "scale_tril": [
        *(np.ones([2, 3]), np.ones(3), np.diag([1.0, 0.0, 1.0]), np.diag([1.0, -1.0, 1.0])),
        np.where(np.tri(3, k=-1), np.inf, np.eye(3)),
    ],
    "row_mixing": [np.eye(3)[:2], np.ones([3, 3]), np.full([3, 3], np.nan)],
    "column_mixing_tril": [np.eye(3), np.eye(2)[:1], np.diag([1.0, -1.0])],
    "concentration": [np.ones(3), np.array([1.0, 0.0]), np.array([1.0, np.inf]), 1.0],
    "rate": [np.ones(1), np.ones([2, 1]), np.array([1.0, -1.0]), np.array([1.0, np.nan])],
    "loc": [np.zeros([2, 3]), np.zeros(2), np.full([3, 2], np.nan)],
    "scale": [np.ones([4, 2]), np.zeros([3, 2]), -np.ones([3, 2]), np.full([3, 2], np.inf)],
}
BAD_OF_INVERSE = {**BAD, "df": [2.0, 1, -3.0, np.nan, np.inf, [5.0, 1.9]]}


@every_name
def test_bad_parameters_raise(name: str) -> None:
    kind = getattr(distributions, name)
    good = {key: GOOD[key] for key in inspect.signature(kind).parameters if key in GOOD}
    if name == "InverseWishart":
        good["df"] = 5.0
    kind(**good)
    for key in good:
        for bad in (BAD_OF_INVERSE if name == "InverseWishart" else BAD)[key]:
            with pytest.raises(ValueError, match=f"^{key} must"):
                kind(**{**good, key: bad})


def test_messages_about_parameters_that_do_not_fit_each_other() -> None:
    message = r"shape \[..., 3, 3\] \(M = 3, R = min\(df, M\) = 3 for df = 7\), got shape \(3, 2\)"
    parameters = {**reference.wishart_bartlett(3, 2), "rate": np.ones(3)}
    with pytest.raises(ValueError, match=f"loc must have {message}"):
        distributions.GeneralisedSingularWishart(7, np.eye(3), **parameters)
    with pytest.raises(ValueError, match="df must have finite values above M - 1 = 2"):
        distributions.InverseWishart(2.0, np.eye(3))
    with pytest.raises(ValueError, match="df: float32"):
        distributions.InverseWishart(tf.constant(5.0), tf.eye(3, dtype=tf.float64))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float64)], autograph=False)
    def sample(loc: tf.Tensor) -> tf.Tensor:
        return distributions.GeneralisedBartlett([1.0], [1.0], loc, [[1.0]]).sample()

    with pytest.raises(ValueError, match="loc must have a static shape"):
        sample(np.ones([1, 1]))
