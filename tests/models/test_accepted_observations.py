"""What observations GPflow's likelihoods take: none that gives a finite, meaningless bound."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import likelihoods as gl

from gpflow_dwp.likelihoods import GammaGaussian
from gpflow_dwp.models import AcceptedObservations
from gpflow_dwp.models.data_checks import accepted_observations, check_observations

REAL = [[-1.5], [0.0], [2.0]]
ZERO_ONE, ONE_HOT = [[0.0], [1.0]], np.eye(3)
COUNTS = [[0.0], [3.0], [1.0]]
CLASSES = [[2.0], [0.0], [1.0]]
OPEN = [[0.1], [0.9]]


def normal_with_two_functions() -> gl.HeteroskedasticTFPConditional:
    return gl.HeteroskedasticTFPConditional(
        tfp.distributions.Normal, scale_transform=tfp.bijectors.Exp()
    )


# What fits, and what does not.
TABLE: list[tuple[Callable[[], Any], list[Any], list[Any]]] = [
    (gl.Gaussian, [REAL], []),
    (gl.GaussianMC, [REAL], []),
    (gl.StudentT, [REAL], []),
    (GammaGaussian, [REAL], []),
    (normal_with_two_functions, [REAL], [np.ones((3, 2))]),
    (gl.Bernoulli, [ZERO_ONE, ONE_HOT], [REAL, [[-1.0], [1.0]], OPEN]),
    (gl.Poisson, [COUNTS, np.array(COUNTS)[:, [0, 0]]], [REAL, OPEN, [[-1.0]]]),
    (gl.Exponential, [COUNTS, OPEN], [REAL]),
    (gl.Gamma, [OPEN, [[1.0], [7.5]]], [REAL, COUNTS]),
    (gl.Beta, [OPEN], [REAL, ZERO_ONE, COUNTS]),
    (lambda: gl.Ordinal(np.array([-1.0, 1.0])), [CLASSES], [REAL, COUNTS, OPEN, [[-1.0]]]),
    (lambda: gl.Softmax(3), [CLASSES], [REAL, COUNTS, ONE_HOT, OPEN, [[-1.0]]]),
    (lambda: gl.MultiClass(3), [CLASSES], [REAL, COUNTS, ONE_HOT, OPEN, [[-1.0]]]),
    (
        lambda: gl.SwitchedLikelihood([gl.Gaussian(), gl.Poisson()]),
        [[[-0.5, 0.0], [3.0, 1.0]]],
        [[[-0.5, 1.0]], [[1.0, 2.0]], [[1.0, 0.5]]],
    ),
]


@pytest.mark.parametrize(("make", "fitting", "unfit"), TABLE)
def test_what_fits_is_taken_and_all_else_refused(
    make: Callable[[], Any], fitting: list[Any], unfit: list[Any]
) -> None:
    likelihood = make()

    for Y in fitting:
        np.testing.assert_array_equal(check_observations(likelihood, Y), Y)
    for Y in unfit:
        with pytest.raises(ValueError, match=f"^Y must .* {type(likelihood).__name__}, got"):
            check_observations(likelihood, Y)


def test_the_table_has_all_of_gpflows_likelihoods() -> None:
    tried = {type(make()) for make, _, _ in TABLE}
    classes = [each for _, each in inspect.getmembers(gl, inspect.isclass)]
    concrete = {
        each
        for each in classes
        if issubclass(each, gl.Likelihood)
        and each is not gl.MonteCarloLikelihood
        and not inspect.isabstract(each)
    }

    # What the table's likelihood of two functions inherits from, and one of labelled rows.
    bases = {gl.MultiLatentTFPConditional, gl.MultiLatentLikelihood}
    assert concrete - tried <= bases


class _NegativeBinomial(gl.Poisson):
    """Inherits what it takes."""


class _Even(gl.Gaussian):
    """Says what it takes."""

    def accepted_observations(self) -> AcceptedObservations:
        return AcceptedObservations("even numbers", lambda Y: tf.equal(Y % 2.0, 0.0))


def test_a_users_likelihood_inherits_or_says_what_it_takes() -> None:
    with pytest.raises(ValueError, match=r"whole numbers from 0 .*_NegativeBinomial, got 0\.5"):
        check_observations(_NegativeBinomial(), [[0.5]])
    with pytest.raises(ValueError, match="even numbers for the likelihood _Even, got 3 in row 2"):
        check_observations(_Even(), [[2.0], [3.0]])


def test_conditions_are_those_of_compiled_code_in_float32() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        for make, fitting, _ in TABLE:
            accepts = tf.function(accepted_observations(make()).accepts, autograph=False)
            for Y in fitting:
                assert np.all(accepts(tf.constant(Y, tf.float32)))
