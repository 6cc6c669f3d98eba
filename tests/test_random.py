"""Noise that belongs to a point: its distribution, what it depends on, and what it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from gpflow_dwp.random import (
    as_generator,
    as_seed,
    fold_in,
    normal,
    normal_at_points,
    random_order,
    split_seed,
)

SEED = as_seed(0)


def points(num: int, width: int = 2, dtype: type = np.float64) -> tf.Tensor:
    return tf.constant(np.random.default_rng(0).normal(size=(num, width)), dtype)


@pytest.mark.parametrize(
    "X",
    [
        points(2_000),
        points(2_000, dtype=np.float32),
        np.arange(3_000.0)[:, None],
        2.0 ** np.arange(-900.0, 900.0)[:, None],
    ],
    ids=["float64", "float32", "grid", "powers"],
)
def test_noise_is_standard_normal_also_at_regular_points(X: Any) -> None:
    noise = normal_at_points(tf.constant(X), SEED, 5, 2).numpy()

    assert noise.shape == (5, len(X), 2) and noise.dtype == tf.constant(X).dtype
    # Level 0.001, and 4 sigma for the correlation of neighbours, once for this fixed seed.
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-3
    neighbours = noise[:, 1:] * noise[:, :-1]
    assert abs(neighbours.mean()) < 4.0 / np.sqrt(neighbours.size)


def test_noise_is_uncorrelated_between_points_draws_columns_and_seeds() -> None:
    X = points(4)
    seeds = tf.constant([[seed, 0] for seed in range(4_000)])

    @tf.function(autograph=False)
    def draw() -> tf.Tensor:
        return tf.map_fn(
            lambda seed: normal_at_points(X, seed, 3, 2), seeds, fn_output_signature=tf.float64
        )

    noise = draw().numpy().reshape(4_000, -1)

    correlation = np.corrcoef(noise.T) - np.eye(noise.shape[1])
    # 5 sigma, for 276 pairs.
    assert np.abs(correlation).max() < 5.0 / np.sqrt(4_000)
    assert np.abs(np.mean(noise[1:] * noise[:-1])) < 5.0 / np.sqrt(noise[1:].size)


def test_equal_points_have_equal_noise_in_any_batch() -> None:
    X = points(6)

    whole = normal_at_points(X, SEED, 3, 2)

    shuffled = tf.gather(X, [5, 2, 2, 0])
    np.testing.assert_array_equal(
        normal_at_points(shuffled, SEED, 3, 2), tf.gather(whole, [5, 2, 2, 0], axis=1)
    )
    swapped = normal_at_points(X[:, ::-1], SEED, 3, 2)  # the order of coordinates matters
    assert np.all(swapped != whole)


def test_float32_has_the_noise_of_float64_at_its_own_points() -> None:
    X = points(2_000, dtype=np.float32)

    noise = normal_at_points(X, SEED, 3, 2)

    # Uniform numbers of 23 digits; the logarithm of the smallest magnifies their rounding.
    wanted = normal_at_points(tf.cast(X, tf.float64), SEED, 3, 2)
    np.testing.assert_allclose(noise, wanted, atol=1e-2, rtol=0.0)
    assert np.std(noise.numpy() - wanted) < 1e-4


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled_noise_is_that_of_eager_mode_and_negative_zero_is_zero(dtype: type) -> None:
    X = tf.concat([points(4, dtype=dtype), tf.constant([[0.0, 1.0], [-0.0, 1.0]], dtype)], axis=0)
    expected = normal_at_points(X, SEED, 3, 2)

    for jit_compile in (False, True):
        compiled = tf.function(
            lambda X, seed: normal_at_points(X, seed, 3, 2),
            jit_compile=jit_compile,
            autograph=False,
        )
        noise = compiled(X, SEED)
        tolerance = {"rtol": 1e-12} if dtype == np.float64 else {"atol": 1e-4}
        np.testing.assert_allclose(noise, expected, **tolerance)
        for each in (noise, expected):
            np.testing.assert_array_equal(each[:, 4], each[:, 5])


@pytest.mark.parametrize(("dtype", "digits"), [(tf.float32, 23), (tf.float64, 52)])
def test_the_largest_numbers_are_finite(
    dtype: tf.DType, digits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 2**64 - 1
    extremes = tf.constant([[most, 0, most, 0], [most, most, 0, 0]], tf.uint64)
    monkeypatch.setattr("gpflow_dwp.random._mix", lambda bits: extremes)
    monkeypatch.setattr("gpflow_dwp.random.hash_rows", lambda points, seed: extremes[0])

    noise = normal_at_points(tf.zeros([4, 1], dtype), SEED, 1, 2).numpy()

    # The first of two uniform numbers is 2^-(digits + 1) at least.
    assert np.all(np.isfinite(noise))
    np.testing.assert_allclose(
        np.linalg.norm(noise[0, 1::2], axis=-1), np.sqrt(2.0 * np.log(2.0) * (digits + 1))
    )


def test_integer_seeds_are_fixed_and_different() -> None:
    seeds = [0, 1, -1, 2**31, 2**40 + 1, 2**61]

    made = [tuple(as_seed(seed).numpy()) for seed in seeds]

    assert made == [tuple(as_seed(seed).numpy()) for seed in seeds]
    assert len(set(made)) == len(seeds)
    np.testing.assert_array_equal(as_seed(tf.constant([4, 5])), [4, 5])  # stateless already


@pytest.mark.parametrize("seed", ["a", 1.5, [1, 2, 3], [[1, 2]], [1.0, 2.0]])
def test_what_is_no_seed_is_named(seed: object) -> None:
    """Catches a tensor of floating point that is cut to an integer."""
    for given in (seed, tf.constant(seed)):
        with pytest.raises(ValueError, match="^seed must be an integer, two of them or None, got "):
            as_seed(given)


def test_generators_are_numpy_s() -> None:
    rng = np.random.default_rng(3)

    assert as_generator(rng) is rng
    assert as_generator(3).random() == np.random.default_rng(3).random()
    assert as_generator(None).random() != as_generator(None).random()
    for seed in ("a", 1.5, -1):
        wanted = f"^seed must be an integer of at least 0, .* {seed!r}"
        with pytest.raises(ValueError, match=wanted):
            as_generator(seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("compiled", [False, True])
def test_no_seed_gives_new_numbers_at_every_call(compiled: bool) -> None:
    def draw() -> tf.Tensor:
        return normal_at_points(tf.zeros([1, 1], tf.float64), as_seed(None), 1, 1)

    function = tf.function(draw, autograph=False) if compiled else draw

    assert len({float(function()[0, 0, 0]) for _ in range(3)}) == 3


def test_seeds_are_those_of_tensorflow() -> None:
    def make(seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.stack(split_seed(seed, 3)), fold_in(seed, 11)

    compiled = tf.function(make, jit_compile=True, autograph=False)
    for seed in ([0, 0], [5, -7], [-(2**31), 2**31 - 1]):
        for split, folded in (make(tf.constant(seed)), compiled(tf.constant(seed))):
            np.testing.assert_array_equal(split, tf.random.split(seed, 3, alg="philox"))
            np.testing.assert_array_equal(folded, tf.random.fold_in(seed, 11, alg="philox"))


def test_an_integer_tensor_is_the_seed_of_its_integer() -> None:
    """Catches 2**31 as a number of int32, the type of a plain tf.constant(3): it has none."""
    compiled = tf.function(as_seed, autograph=False)

    for seed in (0, 3, 2**31 + 5, 2**40 + 7, -1, -(2**40)):
        for dtype in (tf.int32, tf.int64) if abs(seed) < 2**31 else (tf.int64,):
            for make in (as_seed, compiled):
                np.testing.assert_array_equal(make(tf.constant(seed, dtype)), as_seed(seed))
    # The shape [] is not taken for numbers of floating point.
    assert normal([], as_seed(0), tf.float64).shape == []


@pytest.mark.parametrize("num_rows", [1, 2, 50])
def test_order_of_one_row_more_changes_in_one_place(num_rows: int) -> None:
    fewer, more = random_order(num_rows, 3), random_order(num_rows + 1, 3)
    (place,) = np.flatnonzero(more == num_rows)

    np.testing.assert_array_equal(np.sort(fewer), np.arange(num_rows))
    changed = np.flatnonzero(fewer != more[:-1])
    assert list(changed) == ([] if place == num_rows else [place])


def test_random_orders_are_all_as_likely_and_draw_once() -> None:
    rng = np.random.default_rng(0)
    orders = [random_order(3, rng) for _ in range(6_000)]
    pairs = [np.sort(random_order(4, rng, 2)[:2]) for _ in range(6_000)]
    for drawn in (orders, pairs):
        counts = np.unique(drawn, axis=0, return_counts=True)[1]
        assert len(counts) == 6 and stats.chisquare(counts).pvalue > 1e-3
    np.testing.assert_array_equal(random_order(4, rng, 4), np.arange(4))
    generators = np.random.default_rng(1), np.random.default_rng(1)
    for generator, num_rows in zip(generators, (5, 500), strict=True):
        random_order(num_rows, generator)
    assert generators[0].random() == generators[1].random()
