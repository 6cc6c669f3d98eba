"""What a full-rank Wishart has that TFP's own has: the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from model_reference import assert_same_mean
from scipy import stats

from gpflow_dwp.distributions import InverseWishart, SingularWishart

tfd = tfp.distributions
TRIL = np.tril([[1.0, 0.0, 0.0], [0.4, 0.7, 0.0], [-0.3, 0.2, 1.5]])
OURS, THEIRS = SingularWishart(7, TRIL), tfd.WishartTriL(np.float64(7), TRIL)
SINGULAR = SingularWishart(2, TRIL)


def test_entropy_and_mode() -> None:
    """Catches a power of the determinant that the singular density has and this one has not."""
    np.testing.assert_allclose(OURS.entropy(), THEIRS.entropy(), rtol=1e-10)
    np.testing.assert_allclose(OURS.mode(), THEIRS.mode(), rtol=1e-10)
    with pytest.raises(NotImplementedError, match="entropy of singular"):
        SINGULAR.entropy()
    with pytest.raises(NotImplementedError, match=r"df = M \+ 1 on, got df = 2"):
        SINGULAR.mode()


@pytest.mark.parametrize("df", [2.5, 3.75])
def test_real_degrees_of_freedom(df: float) -> None:
    """Catches a rank that is rounded down, and powers of determinants that only integers have."""
    ours, law = SingularWishart(df, TRIL), stats.wishart(df, TRIL @ TRIL.T)
    G = ours.sample(3, seed=[1, 2])
    np.testing.assert_allclose(ours.log_prob(G), law.logpdf(np.moveaxis(G, 0, -1)), rtol=1e-9)
    np.testing.assert_allclose(ours.entropy(), law.entropy(), rtol=1e-9)
    assert_same_mean(ours.sample(4_000, seed=[3, 4]), ours.mean(), 5.0)
    with pytest.raises(ValueError, match="any number above M - 1 = 2, got 1.5"):
        SingularWishart(1.5, TRIL)


@pytest.mark.parametrize("kind", [SingularWishart, InverseWishart])
def test_functions_return_and_check_it_and_its_scale_can_be_learned(kind: Any) -> None:
    """Catches starting values that are no Cholesky factors."""

    @tf.function
    def made(scale_tril: tf.Tensor) -> Any:
        return kind(7, scale_tril, validate_args=True)

    seed = [0, 1]
    expected = kind(7, TRIL).sample(seed=seed)
    np.testing.assert_allclose(made(tf.constant(TRIL)).sample(seed=seed), expected, rtol=1e-12)
    with pytest.raises(tf.errors.InvalidArgumentError, match="scale_tril must be positive"):
        made(tf.constant(-TRIL))
    learned = tfp.experimental.util.make_trainable(kind, df=7, batch_and_event_shape=[3, 3])
    with tf.GradientTape() as tape:
        density = learned.log_prob(tf.eye(3))
    (gradient,) = tape.gradient(density, learned.trainable_variables)
    assert np.abs(gradient).min() > 0.0


def test_divergences_from_and_to_it() -> None:
    other, wider = tfd.WishartTriL(np.float64(5), 2.0 * TRIL), SingularWishart(5, 2.0 * TRIL)
    for q, p in ((OURS, other), (THEIRS, wider)):
        np.testing.assert_allclose(tfd.kl_divergence(q, p), OURS.kl_divergence(wider), rtol=1e-10)


@pytest.mark.parametrize("distribution", [OURS, InverseWishart(6.5, TRIL)])
def test_a_joint_distribution_can_be_pinned(distribution: Any) -> None:
    """Catches matrices that automatic inference cannot move; the mode is where no slope is left."""
    G = distribution.mode()
    with tf.GradientTape() as tape:
        tape.watch(G)
        density = distribution.log_prob(0.5 * (G + tf.linalg.matrix_transpose(G)))
    np.testing.assert_allclose(tape.gradient(density, G), np.zeros([3, 3]), atol=1e-8)
    joint = tfd.JointDistributionNamed(
        {"G": distribution, "y": lambda G: tfd.Normal(G[..., 0, 0], np.float64(1))}
    )
    bijector = joint.experimental_pin(y=1.0).experimental_default_event_space_bijector()
    matrix = bijector.forward({"G": tf.constant(np.linspace(-1.0, 1.0, 6))})["G"]
    assert np.linalg.eigvalsh(matrix).min() > 0.0
    with pytest.raises(NotImplementedError, match="rank 2 < 3"):
        SINGULAR.experimental_default_event_space_bijector()
