"""Deep Gaussian and deep inverse Wishart processes."""

from __future__ import annotations

import gpflow
import gpflow.kernels as gk
import model_reference
import numpy as np
import pytest
import tensorflow as tf
from model_reference import tiny_model, toy_data
from scipy import stats

from gpflow_dwp.kernels import gram_K_cross, gram_K_diag
from gpflow_dwp.layers import GramLayer, WishartLayer
from gpflow_dwp.models import DeepInverseWishartProcess
from gpflow_dwp.random import as_seed

DATA = toy_data()


NUM_DRAWS = 4_000
NUM_INDUCING = 4


def prior_functionals(kind: str, depth: int, width: int, seed: int) -> dict[str, np.ndarray]:
    """Numbers that depend on the topmost Gram matrix, for draws of the prior, each [S]."""
    model = tiny_model(depth, kind, width=width, num_inducing=NUM_INDUCING)
    for layer in model.hidden_layers:
        layer.kernel.variance.assign(1.3)
        layer.kernel.lengthscales.assign(0.8 * np.ones(layer.kernel.lengthscales.shape))
        model_reference.set_to_prior(layer)
    points = DATA[0][:NUM_INDUCING]
    model.inducing_variable.Z.assign(points)
    posterior = model.posterior(NUM_DRAWS, seed=seed)
    gram = posterior.gram_matrices()[-1].numpy()
    joint = posterior.gram_matrices(np.vstack([points, DATA[0][-2:]]))[-1].numpy()
    ti, tt = joint[:, NUM_INDUCING:, :NUM_INDUCING], joint[:, NUM_INDUCING:, NUM_INDUCING:]
    eigenvalues = np.linalg.eigvalsh(gram)
    return {
        "diagonal element": gram[:, 0, 0],
        "off-diagonal element": gram[:, 1, 2],
        "largest eigenvalue": eigenvalues[:, -1],
        "second eigenvalue": eigenvalues[:, -2],
        "log-determinant of a block": np.linalg.slogdet(gram[:, :2, :2])[1],
        "target with inducing point": ti[:, 0, 1],
        "target with itself": tt[:, 0, 0],
        "target with target": tt[:, 0, 1],
        "target with both": tt[:, 1, 1] * ti[:, 1, 0] * gram[:, 0, 0],
    }


# The level of each Kolmogorov-Smirnov test: all of them together, 9 for each of 3 priors, have the
# level 1% (Bonferroni).
LEVEL = 0.01 / (9 * 3)
PRIORS = [(3, 2), (2, NUM_INDUCING), (2, 6)]


@pytest.mark.parametrize(("depth", "width"), PRIORS)
def test_prior_gram_matrices_are_those_of_a_deep_wishart_process(depth: int, width: int) -> None:
    gaussian = prior_functionals("gaussian", depth, width, seed=0)
    wishart = prior_functionals("wishart", depth, width, seed=1)
    p_values = {each: stats.ks_2samp(gaussian[each], wishart[each]).pvalue for each in gaussian}
    assert len(PRIORS) * len(p_values) * LEVEL == pytest.approx(0.01)
    assert min(p_values.values()) > LEVEL, p_values


def log_densities(
    layer: GramLayer, covariance: tf.Tensor, features: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Log P and log Q, [S], of what a layer draws, where it has these features, [S, M, ν]."""
    prior, posterior = layer.prior(covariance), layer.posterior(covariance)
    if isinstance(layer, WishartLayer):
        gram = tf.matmul(features, features, transpose_b=True)
        return prior.log_prob(gram), posterior.log_prob(gram)
    u = tf.linalg.matrix_transpose(features) * np.sqrt(layer.width)
    return tf.reduce_sum(prior.log_prob(u), 1), tf.reduce_sum(posterior.log_prob(u), 1)


@pytest.mark.parametrize("kind", ["gaussian", "wishart"])
def test_rotations_change_the_posterior_density_of_the_deep_gaussian_process_alone(
    kind: str,
) -> None:
    layer = tiny_model(2, kind, width=3, num_inducing=4).layers[0]
    covariance = model_reference.covariances(2, 4)
    features = layer.sample_inducing(covariance, 2, as_seed(0)).features
    prior, posterior = log_densities(layer, covariance, features)

    for rotation in stats.ortho_group.rvs(3, size=2, random_state=0):
        rotated_prior, rotated = log_densities(layer, covariance, features @ rotation)
        np.testing.assert_allclose(rotated_prior, prior, rtol=1e-9)
        if kind == "wishart":
            np.testing.assert_allclose(rotated, posterior, rtol=1e-9)
        else:
            assert np.all(np.abs(rotated - posterior) > 0.1)


class Composition(gk.Kernel):
    """Kernels, each applied to the Gram matrix of the one before."""

    def __init__(self, bottom: gk.Kernel, *above: gk.Kernel) -> None:
        super().__init__()
        self.bottom, self.above = bottom, above

    def K(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        X2 = X if X2 is None else X2
        cross, rows, columns = (
            value[None]
            for value in (self.bottom.K(X, X2), self.bottom.K_diag(X), self.bottom.K_diag(X2))
        )
        for kernel in self.above:
            cross = gram_K_cross(kernel, cross, rows, columns)
            rows, columns = gram_K_diag(kernel, rows), gram_K_diag(kernel, columns)
        return cross[0]

    def K_diag(self, X: tf.Tensor) -> tf.Tensor:
        return tf.linalg.diag_part(self.K(X))


def test_with_many_degrees_of_freedom_it_is_regression_with_its_kernels_composed() -> None:
    model = tiny_model(3, "inverse_wishart")
    for layer in model.hidden_layers:
        layer.df.assign(1e12)
        layer.extra_df.assign(1e-12)
        layer.root_scale.assign(1e-12)
    output = gpflow.utilities.deepcopy(model.output_layer)
    output.kernel = Composition(*(layer.kernel for layer in model.layers))
    parts = model.likelihood, model.inducing_variable, model.num_data
    composed = DeepInverseWishartProcess([output], *parts)

    value, expected = model.elbo_terms(DATA, seed=0), composed.elbo_terms(DATA)

    np.testing.assert_allclose(value.data, expected.data, rtol=1e-3)
    np.testing.assert_allclose(value.log_ratios, [0.0, 0.0, *expected.log_ratios], atol=1e-3)
