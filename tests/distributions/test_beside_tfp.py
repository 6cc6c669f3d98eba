"""What a full-rank Wishart has that TFP's own has: the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

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
