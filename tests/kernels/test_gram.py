"""Kernels of Gram matrices against GPflow's kernels of the features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gpflow
import gpflow.kernels as gk
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.kernels import gram_K, gram_K_cross, gram_K_diag
from gpflow_dwp.kernels.gram import cross_covariance, kernel_in_dtype

WIDTH = 4


class OwnRadius(gk.IsotropicStationary):
    """A user's kernel that defines K_r."""

    def K_r(self, r: tf.Tensor) -> tf.Tensor:
        return self.variance / (1.0 + r)


class OwnSquare(gk.SquaredExponential):
    """A user's kernel that changes the formula of the one it derives from."""

    def K_r2(self, r2: tf.Tensor) -> tf.Tensor:
        return self.variance * tf.exp(-2.0 * r2)


KERNELS: dict[str, Callable[[], gk.Kernel]] = {
    "squared_exponential": lambda: gk.SquaredExponential(1.7, 0.6),
    "matern12": lambda: gk.Matern12(1.7, 0.6),
    "matern32": lambda: gk.Matern32(1.7, 0.6),
    "matern52": lambda: gk.Matern52(1.7, 0.6),
    "rational_quadratic": lambda: gk.RationalQuadratic(1.7, 0.6, alpha=0.4),
    "own_radius": lambda: OwnRadius(1.7, 0.6),
    "own_square": lambda: OwnSquare(1.7, 0.6),
    "linear": lambda: gk.Linear(1.7),
    "polynomial": lambda: gk.Polynomial(3.0, 1.7, 0.6),
    "square": lambda: gk.Polynomial(2, 0.7, 1.6),
    "arc_cosine_0": lambda: gk.ArcCosine(0, 1.7, 0.6, 0.3),
    "arc_cosine_1": lambda: gk.ArcCosine(1, 1.7, 0.6, 0.3),
    "arc_cosine_2": lambda: gk.ArcCosine(2, 1.7, 0.6, 0.3),
    "constant": lambda: gk.Constant(1.7),
    "white": lambda: gk.White(1.7),
    "static": lambda: gk.White(1.7) * gk.Constant(0.6) + gk.Constant(0.2),
    "nested": lambda: (
        (gk.Linear(1.7) + gk.SquaredExponential(0.3, 0.6)) * (gk.Constant(0.2) + gk.Matern12(0.7))
        + gk.ArcCosine(1, 0.4) * gk.White(0.5)
    ),
}
# With a root at zero distance, as for the derivative of order 0 at angle zero, the derivative by
# the features does not exist where two different points coincide.
ROUGH = ("matern12", "own_radius", "arc_cosine_0", "nested")

every_kernel = pytest.mark.parametrize("name", KERNELS)
# Those of the others have no root and no angle.
PLAIN = ("rational_quadratic", "own_square", "linear", "square", "constant", "white")
every_formula = pytest.mark.parametrize("name", [name for name in KERNELS if name not in PLAIN])
# One for each way in which kernels are computed, where no formula matters.
one_of_each_kind = pytest.mark.parametrize(
    "name", ["matern32", "own_square", "polynomial", "arc_cosine_2", "static", "nested"]
)


def features(rows: int, batch: Sequence[int] = (), *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=[*batch, rows, WIDTH])


def inner(rows: Any, columns: Any) -> tf.Tensor:
    return tf.matmul(rows, columns, transpose_b=True) / WIDTH


def norms(points: Any) -> tf.Tensor:
    return tf.reduce_sum(tf.square(points), -1) / WIDTH


def three_ways(kernel: gk.Kernel, F: Any, F2: Any) -> list[tf.Tensor]:
    """What this package computes, from inner products."""
    return [
        gram_K(kernel, inner(F, F)),
        gram_K_cross(kernel, inner(F, F2), norms(F), norms(F2)),
        gram_K_diag(kernel, norms(F)),
    ]


def expected(kernel: gk.Kernel, F: Any, F2: Any) -> list[tf.Tensor]:
    """What GPflow computes, from features."""
    X, X2 = F / np.sqrt(WIDTH), F2 / np.sqrt(WIDTH)
    return [kernel.K(X), kernel.K(X, X2), kernel.K_diag(X)]


def weighted(values: list[tf.Tensor]) -> tf.Tensor:
    """A scalar that sees each entry with a weight of its own."""
    rng = np.random.default_rng(5)
    return tf.add_n(
        [tf.reduce_sum(rng.normal(size=v.shape).astype(v.dtype.name) * v) for v in values]
    )


def with_gradients(
    function: Callable[..., Any], kernel: gk.Kernel, F: Any, F2: Any
) -> tuple[list[tf.Tensor], list[np.ndarray]]:
    """What a function computes, and the gradient of a number that is made of it."""
    F, F2 = tf.constant(F), tf.constant(F2)
    sources = [F, F2, *kernel.trainable_variables]
    with tf.GradientTape() as tape:
        tape.watch([F, F2])
        values = function(kernel, F, F2)
        loss = weighted(values)
    found = tape.gradient(loss, sources, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return values, [g.numpy() for g in found]


@every_kernel
def test_values_and_gradients_equal_gpflow(name: str) -> None:
    kernel, F, F2 = KERNELS[name](), features(5), features(3, seed=1)
    values, gradients = with_gradients(three_ways, kernel, F, F2)
    of_gpflow, gradients_of_gpflow = with_gradients(expected, kernel, F, F2)
    for actual, wanted in zip(values, of_gpflow, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-7)
        # GPflow takes a root, or an angle, of the rounding error on its diagonal; we do not.
        off = ~np.eye(5, dtype=bool) if actual.shape == (5, 5) else ...
        np.testing.assert_allclose(actual[off], wanted[off], rtol=1e-11, atol=1e-12)
    assert len(gradients) > 2
    for actual, wanted in zip(gradients, gradients_of_gpflow, strict=True):
        # GPflow's order 0 moves the angle by 1e-15, which its diagonal shows in the gradient.
        np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=1e-6)


@every_formula
def test_coinciding_points_have_finite_gradients(name: str) -> None:
    """And so have gradients by the Gram matrix where it is of rank one: angles of 0 and π, points
    on a line, two of them at the origin."""
    kernel, F, F2 = KERNELS[name](), features(5), features(3, seed=1)
    F[3], F2[1] = F[0], F[2]
    found, gradients = with_gradients(three_ways, kernel, F, F2)
    tolerance = 1e-6 if name in ROUGH else 1e-11
    for actual, by_gpflow in zip(found, expected(kernel, F, F2), strict=True):
        np.testing.assert_allclose(actual, by_gpflow, rtol=tolerance, atol=tolerance)
    column = tf.constant([[1.0], [-1.0], [1.0], [0.0], [0.0], [2.0]], tf.float64)
    gram = column @ tf.transpose(column)
    sources = [gram, *kernel.trainable_variables]
    with tf.GradientTape() as tape:
        tape.watch(gram)
        diagonal = tf.linalg.diag_part(gram)
        loss = weighted([gram_K(kernel, gram), gram_K_cross(kernel, gram, diagonal, diagonal)])
    gradients += tape.gradient(loss, sources, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    for gradient in gradients:
        assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_without_bias_at_opposite_points(order: int) -> None:
    """Angle π is met exactly where the bias is negligible; J and its derivative vanish there."""
    kernel = gk.ArcCosine(order, 1.7, 1.0, 1e-6)
    cross = tf.constant([[-1.0, 1.0]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(cross)
        values = gram_K_cross(kernel, cross, np.ones(1), np.ones(2))
    at_zero = {0: 1.0, 1: 1.0, 2: 3.0}[order]
    np.testing.assert_allclose(values, [[0.0, 1.7 * at_zero]], atol=2e-3)
    assert np.all(np.isfinite(tape.gradient(values, cross)))


@pytest.mark.parametrize("kind", [gk.SquaredExponential, gk.Matern12, gk.RationalQuadratic])
def test_stationary_diagonal_is_exact(kind: type[gk.Stationary]) -> None:
    """σ², and no gradient, even where r² would round to something that has a bad root."""
    kernel, gram = kind(1.7, 0.013), inner(features(6), features(6))
    with tf.GradientTape() as tape:
        tape.watch(gram)
        diagonal = tf.linalg.diag_part(gram_K(kernel, gram))
    # The squared exponential has no root to take, so its rounding errors do no harm.
    slack = 1e-10 if kind is gk.SquaredExponential else 0.0
    np.testing.assert_allclose(diagonal, np.full(6, kernel.variance), rtol=slack)
    np.testing.assert_allclose(tape.gradient(diagonal, gram), np.zeros((6, 6)), atol=slack)


@pytest.mark.parametrize("name", ["squared_exponential", "linear", "static", "nested"])
def test_leading_axes_broadcast(name: str) -> None:
    kernel, F, F2 = KERNELS[name](), features(5), features(4, (3,), seed=1)
    cross = inner(F[None], F2)
    whole = gram_K_cross(kernel, cross, norms(F), norms(F2))
    one = gram_K_cross(kernel, cross[:1], norms(F)[None], norms(F2))
    other = gram_K_cross(kernel, cross[0], norms(F), norms(F2))
    assert whole.shape == one.shape == other.shape == (3, 5, 4)
    for s in range(3):
        each = gram_K_cross(kernel, cross[s], norms(F), norms(F2[s]))
        np.testing.assert_allclose(whole[s], each, rtol=1e-13)
        mixed = gram_K_cross(kernel, cross[0], norms(F), norms(F2[s]))
        np.testing.assert_allclose(one[s], mixed, rtol=1e-13)
        np.testing.assert_allclose(other[s], mixed, rtol=1e-13)


@one_of_each_kind
def test_compiled_equals_eager(name: str) -> None:
    """Also where the number of points is unknown until it runs."""
    kernel, F, F2 = KERNELS[name](), features(5), features(3, seed=1)
    unknown = tf.TensorSpec([None, WIDTH], tf.float64)
    compiled = tf.function(
        lambda F, F2: three_ways(kernel, F, F2), input_signature=[unknown, unknown], autograph=False
    )
    for actual, wanted in zip(compiled(F, F2), three_ways(kernel, F, F2), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-12, atol=1e-13)


@every_formula
def test_float32(name: str) -> None:
    wanted = three_ways(KERNELS[name](), features(5), features(3, seed=1))
    gpflow.config.set_default_float(np.float32)
    kernel, F, F2 = KERNELS[name](), features(5), features(3, seed=1)
    F, F2 = F.astype(np.float32), F2.astype(np.float32)
    for actual, in_float64 in zip(three_ways(kernel, F, F2), wanted, strict=True):
        assert actual.dtype == tf.float32
        # Order 0 has an angle near zero only on the diagonal, which is set exactly.
        np.testing.assert_allclose(actual, in_float64, rtol=5e-5, atol=5e-5)
    F[3], F2[1] = F[0], F[2]
    for gradient in with_gradients(three_ways, kernel, F, F2)[1]:
        assert np.all(np.isfinite(gradient))


@one_of_each_kind
@pytest.mark.parametrize("draws", [(), (2,)], ids=["one", "broadcast"])
def test_features_change_nothing_but_the_time(name: str, draws: tuple[int, ...]) -> None:
    def cross(kernel: gk.Kernel, F: Any, F2: Any, *, known: bool) -> list[tf.Tensor]:
        pair = (F / np.sqrt(WIDTH), F2 / np.sqrt(WIDTH)) if known else None
        return [gram_K_cross(kernel, inner(F, F2), norms(F), norms(F2), features=pair)]

    kernel, F, F2 = KERNELS[name](), features(5), features(4, draws, seed=1)
    (values, gradients), (expected, expected_gradients) = (
        with_gradients(partial(cross, known=known), kernel, F, F2) for known in (True, False)
    )

    np.testing.assert_allclose(values, expected, rtol=1e-12)
    for actual, wanted in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-12)


PRECISE = {
    "squared exponential": lambda: gk.SquaredExponential(lengthscales=[0.5, 2.0]),
    "matern": lambda: gk.Matern32(1.5, 0.7),
    "sum of products": lambda: gk.RBF(0.5) * gk.Linear(0.2) + gk.Constant(2.0) + gk.Matern12(),
    "periodic": lambda: gk.Periodic(gk.RBF(), period=1.7),
    "arc cosine": lambda: gk.ArcCosine(order=1, weight_variances=[0.5, 2.0]),
    "change points": lambda: gk.ChangePoints([gk.RBF(), gk.Linear()], [0.1], steepness=3.0),
}


@pytest.mark.parametrize("name", PRECISE)
def test_values_and_gradients_are_those_of_the_other_precision(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(4, 1 if name == "change points" else 2))
    expected = PRECISE[name]()
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        kernel = PRECISE[name]()
        variables = kernel.trainable_variables
        with tf.GradientTape() as tape:
            accurate = kernel_in_dtype(kernel, tf.float64)
            values, diagonal = accurate(X), accurate(X, full_cov=False)
            total = tf.reduce_sum(values**2)
        gradients = tape.gradient(total, variables)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(expected(X) ** 2)

    assert values.dtype == tf.float64
    np.testing.assert_allclose(values, expected(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(diagonal, np.diag(values), rtol=1e-6)
    others = tape.gradient(total, expected.trainable_variables)
    for gradient, other in zip(gradients, others, strict=True):
        assert gradient.dtype == tf.float32
        np.testing.assert_allclose(gradient, other, rtol=1e-4, atol=1e-4)
    assert all(parameter.dtype == tf.float32 for parameter in kernel.parameters)
    assert kernel_in_dtype(expected, tf.float64) is expected


class OwnDistance(gk.SquaredExponential):
    """A user's kernel of another distance."""

    def scaled_squared_euclid_dist(self, X: Any, X2: Any = None) -> tf.Tensor:
        return 3.0 * super().scaled_squared_euclid_dist(X, X2)


class OwnCall(gk.Matern12):
    """A user's kernel that is called in another way."""

    def __call__(self, *arguments: Any, **settings: Any) -> tf.Tensor:
        return 2.0 * super().__call__(*arguments, **settings)


CROSSED: dict[str, Callable[[], gk.Kernel]] = {
    "squared exponential": lambda: gk.SquaredExponential(1.7, [0.6, 0.3], active_dims=[0, 2]),
    "Matern 1/2": lambda: gk.Matern12(1.7, 0.6, active_dims=slice(1, 3)),
    "rational quadratic": lambda: gk.RationalQuadratic(1.7, 0.6, alpha=0.4),
    "cosine": lambda: gk.Cosine(1.7, 0.6),
    "sum": lambda: gk.Matern52() + gk.Linear(),
    "own distance": OwnDistance,
    "own call": OwnCall,
}


@pytest.mark.parametrize("dtype", [tf.float64, tf.float32])
@pytest.mark.parametrize("name", CROSSED)
def test_it_is_the_kernel(name: str, dtype: tf.DType) -> None:
    """Catches a lost scale or column, and a user's formula that is passed over."""
    rng = np.random.default_rng(0)
    points, targets = (tf.constant(rng.normal(size=[n, 3]), dtype) for n in (4, 5))
    kernel = kernel_in_dtype(CROSSED[name](), dtype)

    values, expected = cross_covariance(kernel, points, targets), kernel(points, targets)

    np.testing.assert_allclose(values, expected, rtol=1e-12 if dtype == tf.float64 else 1e-4)
