"""The inverse Wishart layer: its log ratio, its gradients, and the conditional of targets."""

from __future__ import annotations

from typing import Any

import gpflow
import model_reference
import numpy as np
import pytest
import tensorflow as tf
from model_reference import covariances
from scipy import stats

from gpflow_dwp.base import TargetBlocks
from gpflow_dwp.layers import GlobalInducingGPLayer, GramDraw, InverseWishartLayer
from gpflow_dwp.layers.propagation import propagate_targets, sample_inducing_path
from gpflow_dwp.random import as_seed

SIZES = [1, 4]
SEED = as_seed(0)

every_size = pytest.mark.parametrize("size", SIZES)


def make_layer(size: int, **arguments: Any) -> InverseWishartLayer:
    arguments = {"df": 3.0, "expected_log_ratio": False, "seed": 0, **arguments}
    layer = InverseWishartLayer(gpflow.kernels.SquaredExponential(), size, **arguments)
    model_reference.randomise(layer, seed=1)
    return layer


def set_to_prior(layer: InverseWishartLayer) -> None:
    layer.root_scale.assign(1e-30)
    layer.extra_df.assign(1e-30)


@every_size
def test_log_ratio_is_the_difference_of_the_two_log_densities(size: int) -> None:
    layer = make_layer(size)
    covariance = covariances(4, size)

    draw = layer.sample_inducing(covariance, 4, SEED)

    expected = layer.prior(covariance).log_prob(draw.gram)
    expected -= layer.posterior(covariance).log_prob(draw.gram)
    np.testing.assert_allclose(draw.log_ratio, expected, atol=1e-8)


@every_size
def test_prior_and_posterior_are_the_papers(size: int) -> None:
    layer = make_layer(size, jitter=0.0)
    covariance = covariances(1, size)
    gram = layer.sample_inducing(covariance, 1, SEED).gram[0].numpy()
    df, extra_df = float(layer.df.numpy()), float(layer.extra_df.numpy())
    scale, root = df * covariance[0].numpy(), layer.root.numpy()

    prior = stats.invwishart(df + size + 1, scale).logpdf(gram)
    scale = scale + float(layer.root_scale.numpy()) * root @ root.T / size
    posterior = stats.invwishart(df + extra_df + size + 1, scale).logpdf(gram)

    np.testing.assert_allclose(layer.prior(covariance).log_prob(gram)[0], prior, atol=1e-9)
    np.testing.assert_allclose(layer.posterior(covariance).log_prob(gram)[0], posterior, atol=1e-9)
    np.testing.assert_allclose(layer.prior(covariance).mean(), covariance)


@pytest.mark.parametrize("expected_log_ratio", [False, True])
def test_one_covariance_serves_all_draws(expected_log_ratio: bool) -> None:
    layer = make_layer(4, expected_log_ratio=expected_log_ratio)
    covariance = covariances(1, 4)

    once = layer.sample_inducing(covariance, 3, SEED)
    repeated = layer.sample_inducing(tf.tile(covariance, [3, 1, 1]), 3, SEED)

    np.testing.assert_allclose(once.gram, repeated.gram, atol=1e-12)
    ratio = tf.broadcast_to(once.log_ratio, [3])
    np.testing.assert_allclose(ratio, repeated.log_ratio, atol=1e-10)


@every_size
def test_expected_log_ratio_is_the_monte_carlo_mean_and_minus_the_divergence(size: int) -> None:
    layer = make_layer(size)
    covariance = covariances(1, size)
    sampled = layer.sample_inducing(covariance, 20_000, SEED)

    layer.expected_log_ratio = True
    expected = layer.sample_inducing(covariance, 3, SEED)

    # 4.5 sigma.
    value = expected.log_ratio.numpy()[0]
    model_reference.assert_same_mean(sampled.log_ratio.numpy(), value, k_sigma=4.5)
    divergence = layer.posterior(covariance).kl_divergence(layer.prior(covariance))
    np.testing.assert_allclose(value, -divergence[0], atol=1e-9)
    again = make_layer(size).sample_inducing(covariance, 3, SEED)
    np.testing.assert_array_equal(expected.gram, again.gram)


@every_size
@pytest.mark.parametrize("expected_log_ratio", [False, True])
def test_log_ratio_of_the_prior_is_zero_for_every_draw(size: int, expected_log_ratio: bool) -> None:
    layer = make_layer(size, expected_log_ratio=expected_log_ratio)
    set_to_prior(layer)

    log_ratio = layer.sample_inducing(covariances(5, size), 5, SEED).log_ratio

    np.testing.assert_allclose(log_ratio, np.zeros(5), atol=1e-8)


@every_size
@pytest.mark.parametrize("expected_log_ratio", [False, True])
def test_gradient_of_the_log_ratio_is_that_of_finite_differences(
    size: int, expected_log_ratio: bool
) -> None:
    # No jitter: no gradient is to flow through it, while finite differences would see it.
    layer = make_layer(size, expected_log_ratio=expected_log_ratio, jitter=0.0)
    root = tf.Variable(np.linalg.cholesky(covariances(2, size)))
    variables = [layer.root.unconstrained_variable, layer.root_scale.unconstrained_variable, root]
    if expected_log_ratio:
        # Draws of Gamma variables have implicit gradients, which are not those of their sampler.
        variables += [layer.df.unconstrained_variable, layer.extra_df.unconstrained_variable]

    def value() -> tf.Tensor:
        covariance = tf.matmul(root, root, transpose_b=True)
        return tf.reduce_sum(layer.sample_inducing(covariance, 2, SEED).log_ratio)

    model_reference.assert_gradients_are_finite_differences(value, variables)


def test_both_estimators_of_the_gradient_agree_in_expectation() -> None:
    layer = make_layer(3)
    covariance = covariances(1, 3)
    variables = [p.unconstrained_variable for p in (layer.df, layer.extra_df, layer.root_scale)]

    def gradient(seed: int) -> np.ndarray:
        with tf.GradientTape() as tape:
            draw = layer.sample_inducing(covariance, 400, as_seed(seed))
            value = tf.reduce_mean(draw.log_ratio)
        return np.array(tape.gradient(value, variables))

    sampled = np.stack([gradient(seed) for seed in range(20)])
    layer.expected_log_ratio = True

    # 5 sigma.
    model_reference.assert_same_mean(sampled, gradient(0), k_sigma=5.0)
    assert np.all(np.std(sampled, axis=0) > 0.0)


class Conditional:
    """A layer at its prior, one covariance over 3 inducing points and 2 targets, and many draws."""

    num_draws = 20_000

    def __init__(self, df: float) -> None:
        self.layer = make_layer(3, jitter=1e-10)
        set_to_prior(self.layer)
        self.layer.df.assign(df)
        self.covariance = covariances(5, seed=4)
        self.noise = tf.constant(np.random.default_rng(6).normal(size=(self.num_draws, 2, 4)))

    def draw(self, *, full_cov: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """G_ii, G_it and G_tt."""
        inducing = self.layer.sample_inducing(self.covariance[None, :3, :3], self.num_draws, SEED)
        tt = self.covariance[3:, 3:]
        tt = tt if full_cov else tf.linalg.diag_part(tt)
        blocks = TargetBlocks(it=self.covariance[None, :3, 3:], tt=tt[None])
        gram = model_reference.condition(
            self.layer, inducing, blocks, self.noise, full_cov=full_cov
        )
        return inducing.gram.numpy(), gram.it.numpy(), gram.tt.numpy()

    def draw_joint(self, size: int) -> np.ndarray:
        """SciPy's draws of the joint law over the inducing points and, of five, the first."""
        df = float(self.layer.df.numpy())
        scale = df * self.covariance.numpy()[:size, :size]
        return stats.invwishart(df + size + 1, scale).rvs(self.num_draws, random_state=7)

    def complete(self) -> np.ndarray:
        """Joint draws over all five points from the layer."""
        ii, it, tt = self.draw(full_cov=True)
        return np.concatenate(
            [np.concatenate([ii, it], -1), np.concatenate([np.swapaxes(it, -1, -2), tt], -1)], -2
        )


def test_joint_draws_have_the_moments_of_the_joint_inverse_wishart() -> None:
    setting = Conditional(df=12.0)

    ours, theirs = setting.complete(), setting.draw_joint(5)

    # 5 sigma; first moments, all second moments, and those of two entries from different blocks.
    model_reference.assert_same_mean(ours, setting.covariance.numpy(), k_sigma=5.0)
    flat, other = ours.reshape(-1, 25), theirs.reshape(-1, 25)
    products, expected = flat[:, :, None] * flat[:, None, :], other[:, :, None] * other[:, None, :]
    model_reference.assert_same_mean(products, expected, k_sigma=5.0)


@pytest.mark.parametrize("df", [0.5, 4.0])
def test_joint_draws_have_the_law_of_the_joint_inverse_wishart(df: float) -> None:
    # Two-sample Kolmogorov-Smirnov tests at p = 1e-5 (4.4 sigma).
    setting = Conditional(df)
    ours, theirs = setting.complete(), setting.draw_joint(5)
    rng = np.random.default_rng(8)
    directions = rng.normal(size=(2, 5))
    for name, functional in {
        "quadratic": lambda g: np.einsum("i,nij,j->n", directions[0], g, directions[0]),
        "bilinear": lambda g: np.einsum("i,nij,j->n", directions[0], g, directions[1]),
        "inverse": lambda g: np.einsum(
            "i,nij,j->n", directions[0], np.linalg.inv(g), directions[0]
        ),
        "determinant": np.linalg.det,
        "between targets": lambda g: g[:, 3, 4] / np.sqrt(g[:, 3, 3] * g[:, 4, 4]),
        "across": lambda g: g[:, 0, 4] / np.sqrt(g[:, 0, 0] * g[:, 4, 4]),
        "remainder": lambda g: 1.0 / np.linalg.inv(g)[:, 4, 4],
        "distance": lambda g: g[:, 3, 3] - 2.0 * g[:, 1, 3] + g[:, 1, 1],
    }.items():
        assert stats.ks_2samp(functional(ours), functional(theirs)).pvalue > 1e-5, name


@pytest.mark.parametrize("df", [0.5, 4.0])
def test_each_target_by_itself_has_the_law_of_the_joint_inverse_wishart(df: float) -> None:
    # Consistency: the joint law over 3 + 1 points. Kolmogorov-Smirnov tests at p = 1e-5.
    setting = Conditional(df)
    theirs = setting.draw_joint(4)
    ii, it, tt = setting.draw(full_cov=False)
    column = it[:, :, 0]
    top = np.concatenate([ii, column[:, :, None]], -1)
    bottom = np.concatenate([column, tt[:, :1]], -1)
    ours = np.concatenate([top, bottom[:, None, :]], -2)
    direction = np.random.default_rng(8).normal(size=4)
    for name, functional in {
        "quadratic": lambda g: np.einsum("i,nij,j->n", direction, g, direction),
        "inverse": lambda g: np.einsum("i,nij,j->n", direction, np.linalg.inv(g), direction),
        "variance": lambda g: g[:, 3, 3],
        "across": lambda g: g[:, 0, 3],
        "remainder": lambda g: 1.0 / np.linalg.inv(g)[:, 3, 3],
        "determinant": np.linalg.det,
    }.items():
        assert stats.ks_2samp(functional(ours), functional(theirs)).pvalue > 1e-5, name


@pytest.mark.parametrize("full_cov", [False, True])
def test_a_target_on_an_inducing_point_has_its_gram_entries(full_cov: bool) -> None:
    layer = make_layer(3, jitter=1e-12)
    covariance = covariances(1, 3)
    draw = layer.sample_inducing(covariance, 1, SEED)
    tt = covariance if full_cov else tf.linalg.diag_part(covariance)
    noise = tf.constant(np.random.default_rng(0).normal(size=(1, 3, 4)))

    gram = model_reference.condition(
        layer, draw, TargetBlocks(covariance, tt), noise, full_cov=full_cov
    )

    expected = draw.gram if full_cov else tf.linalg.diag_part(draw.gram)
    np.testing.assert_allclose(gram.it, draw.gram, atol=1e-4)
    np.testing.assert_allclose(gram.tt, expected, atol=1e-4)


def test_groups_of_targets_are_drawn_as_each_is_by_itself() -> None:
    layer = make_layer(3)
    whole = covariances(2, 9)  # three inducing points, and three groups of two targets
    draw = layer.sample_inducing(whole[:, :3, :3], 2, SEED)
    it, tt = whole[:, :3, 3:], whole[:, 3:, 3:]
    noise = tf.constant(np.random.default_rng(3).normal(size=(2, 6, 4)))
    groups = [slice(start, start + 2) for start in (0, 2, 4)]
    blocks = tf.stack([tt[:, group, group] for group in groups], axis=1)

    together = model_reference.condition(
        layer, draw, TargetBlocks(it, blocks), noise, full_cov=True
    )

    for index, group in enumerate(groups):
        alone = model_reference.condition(
            layer,
            draw,
            TargetBlocks(it[..., group], tt[:, group, group]),
            noise[:, group],
            full_cov=True,
        )
        np.testing.assert_allclose(together.it[..., group], alone.it, rtol=1e-10)
        np.testing.assert_allclose(together.tt[:, index], alone.tt, rtol=1e-10)
        np.testing.assert_allclose(together.features[:, group], alone.features, rtol=1e-10)


@pytest.mark.parametrize("full_cov", [False, True])
def test_gradients_of_targets_are_those_of_finite_differences(full_cov: bool) -> None:
    layer = make_layer(3, jitter=0.0)
    covariance = covariances(2, 5, seed=4)
    root = tf.Variable(np.linalg.cholesky(covariance))
    noise = tf.constant(np.random.default_rng(1).normal(size=(2, 2, 4)))
    weights = np.random.default_rng(2).normal(size=(2, 5, 5))
    gram_root = layer.sample_inducing(covariance[:, :3, :3], 2, SEED).features
    gram_root = tf.Variable(gram_root)

    def value() -> tf.Tensor:
        covariance = tf.matmul(root, root, transpose_b=True)
        # The draw is a constant, but for its root: Gamma variables have implicit gradients.
        draw = layer.sample_inducing(covariance[:, :3, :3], 2, SEED)._replace(features=gram_root)
        tt = covariance[:, 3:, 3:] if full_cov else tf.linalg.diag_part(covariance)[:, 3:]
        gram = model_reference.condition(
            layer, draw, TargetBlocks(covariance[:, :3, 3:], tt), noise, full_cov=full_cov
        )
        total = tf.reduce_sum(weights[:, :3, 3:] * gram.it)
        return total + tf.reduce_sum(weights[:, :2, :2] * gram.tt if full_cov else gram.tt)

    variables = [root, gram_root, layer.df.unconstrained_variable]
    model_reference.assert_gradients_are_finite_differences(value, variables)


def test_gradient_is_finite_where_a_target_is_an_inducing_point() -> None:
    model_reference.assert_gradient_is_finite_at_inducing_points(make_layer(3), width=4)


def test_bound_terms_of_a_stack_and_their_gradients() -> None:
    layers = [make_layer(4, jitter=1e-4) for _ in range(2)]
    output = GlobalInducingGPLayer(
        gpflow.kernels.SquaredExponential(), 2, pseudo_targets=np.ones((4, 2))
    )
    rng = np.random.default_rng(0)
    points, targets = (tf.constant(rng.normal(size=(n, 2))) for n in (4, 6))
    variables = [v for layer in (*layers, output) for v in layer.trainable_variables]

    def terms_and_gradients() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            path = sample_inducing_path(layers, output, points, 3, SEED)
            mean, variance = propagate_targets(layers, output, path, targets[:, None], as_seed(1))
            terms = [*path.log_ratios, mean, variance]
            total = tf.add_n([tf.reduce_sum(tf.sin(term)) for term in terms])
        return [*terms, *tape.gradient(total, variables)]

    compiled = tf.function(terms_and_gradients, autograph=False)()
    for one, other in zip(terms_and_gradients(), compiled, strict=True):
        assert np.all(np.isfinite(one))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_joint_targets_compile_with_any_number_of_them() -> None:
    layer = make_layer(3)
    covariance = covariances(1, 5, seed=4)
    draw = layer.sample_inducing(covariance[:, :3, :3], 2, SEED)

    def condition(it: tf.Tensor, tt: tf.Tensor, noise: tf.Tensor) -> TargetBlocks:
        constant = GramDraw(*draw)
        return model_reference.condition(
            layer, constant, TargetBlocks(it, tt), noise, full_cov=True
        )

    noise = tf.constant(np.random.default_rng(0).normal(size=(2, 2, 4)))
    blocks = (covariance[:, :3, 3:], covariance[:, 3:, 3:])
    signature = [tf.TensorSpec([None, 3, None], tf.float64)]
    signature += [tf.TensorSpec([None, None, n], tf.float64) for n in (None, 4)]
    compiled = tf.function(condition, input_signature=signature, autograph=False)(*blocks, noise)
    for one, other in zip(compiled, condition(*blocks, noise), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_inducing": 0}, "num_inducing must be a positive integer, got 0"),
        ({"df": 0.0}, "df must be a positive number, got 0.0"),
        ({"extra_df": -1}, "extra_df must be a positive number, got -1"),
        ({"jitter": -1e-6}, "jitter must not be negative, got -1e-06"),
        ({"jitter": np.inf}, "jitter must be a finite number, got inf"),
        ({"num_inducing": 10**15}, "num_inducing must be smaller, got 1000000000000000"),
        ({"expected_log_ratio": "no"}, "expected_log_ratio must be True or False, got 'no'"),
    ],
)
def test_bad_arguments_are_refused(changes: dict[str, Any], message: str) -> None:
    arguments = {"kernel": gpflow.kernels.Linear(), "num_inducing": 3, **changes}
    with pytest.raises(ValueError, match=message):
        InverseWishartLayer(**arguments)


@pytest.mark.parametrize("expected_log_ratio", [True, False])
def test_in_float32_inducing_points_stay_in_double_precision(expected_log_ratio: bool) -> None:
    points = np.random.default_rng(0).normal(size=(20, 2))
    covariance = gpflow.kernels.SquaredExponential(lengthscales=3.0)(points)[None]
    draws = []
    for dtype in (np.float64, np.float32):
        with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
            kernel = gpflow.kernels.SquaredExponential()
            layer = InverseWishartLayer(kernel, 20, expected_log_ratio=expected_log_ratio, seed=0)
        draws.append(layer.sample_inducing(covariance, 3, as_seed(0)))

    assert draws[1].gram.dtype == tf.float64
    np.testing.assert_allclose(draws[1].log_ratio, draws[0].log_ratio, rtol=1e-5)
    np.testing.assert_allclose(draws[1].gram, draws[0].gram, rtol=1e-3, atol=1e-4)
