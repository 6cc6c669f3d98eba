"""What holds for the law of every distribution of the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
import tensorflow as tf
import tensorflow_probability as tfp
from distribution_cases import (
    CASES,
    GRAM_NAMES,
    SEED,
    as_tensors,
    every_name,
    make,
    mixing,
    random_parameters,
)
from model_reference import assert_gradients_are_finite_differences, assert_same_mean


@every_name
@pytest.mark.parametrize(("size", "df"), CASES)
def test_shapes_densities_of_samples_and_the_support(name: str, size: int, df: int) -> None:
    distribution = make(name, random_parameters(name, size, df, (2,)), df)
    event_shape = [size, min(df, size) if name == "GeneralisedBartlett" else size]
    assert distribution.event_shape == event_shape and distribution.batch_shape == [2]
    np.testing.assert_array_equal(distribution.event_shape_tensor(), event_shape)
    np.testing.assert_array_equal(distribution.batch_shape_tensor(), [2])
    assert (distribution.dtype, distribution.name) == (tf.float64, name)
    assert distribution.reparameterization_type == tfp.distributions.FULLY_REPARAMETERIZED
    sample, log_prob = distribution.experimental_sample_and_log_prob([4, 3], seed=SEED)
    assert sample.shape == [4, 3, 2, *event_shape]
    assert log_prob.shape == [4, 3, 2]
    np.testing.assert_array_equal(distribution.sample([4, 3], seed=SEED), sample)
    np.testing.assert_allclose(distribution.log_prob(sample), log_prob, rtol=1e-4, atol=1e-4)
    assert distribution.sample(seed=SEED).shape == [2, *event_shape]
    assert not np.array_equal(distribution.sample(), distribution.sample())
    if name != "GeneralisedBartlett":
        assert not np.isfinite(distribution.log_prob(-np.eye(size))).any()
    with pytest.raises(ValueError, match="value must have shape"):
        distribution.log_prob(np.eye(2))


@pytest.mark.parametrize("name", GRAM_NAMES)
@pytest.mark.parametrize(("size", "df"), CASES)
def test_samples_are_symmetric_made_of_the_factor_and_of_their_mean(
    name: str, size: int, df: int
) -> None:
    parameters = random_parameters(name, size, df)
    distribution, rank = make(name, parameters, df), min(df, size)
    assert (distribution.df, distribution.rank) == (df, rank)
    g = distribution.sample(20_000, seed=SEED).numpy()
    np.testing.assert_array_equal(g, np.swapaxes(g, -1, -2))
    values = np.linalg.eigvalsh(g[:20])
    np.testing.assert_allclose(values[:, : size - rank], 0.0, atol=1e-12)
    assert np.all(values[:, size - rank :] > 0.0)
    t = distribution.factor.sample(20_000, seed=SEED).numpy()
    expected = reference.gram(t[:20], *mixing(name, parameters, size, df))
    np.testing.assert_allclose(g[:20], expected)
    # Every entry within 5 sigma.
    assert_same_mean(g, distribution.mean(), 5.0)
    error = np.std(g, axis=0) / np.sqrt(len(g))
    assert np.all(error < 0.05 * np.max(np.abs(distribution.mean())))


@every_name
def test_batch_dimensions_broadcast(name: str) -> None:
    size, df, batch = 4, 2, (3, 2)
    parameters = random_parameters(name, size, df, batch)
    # Each parameter keeps the whole batch, one of its dimensions, or none of it.
    slices = [np.s_[:, :], np.s_[:1, :], np.s_[:, :1], np.s_[0], np.s_[0, 0], np.s_[:, 1:]]
    parameters = {
        key: value[index] for (key, value), index in zip(parameters.items(), slices, strict=False)
    }
    distribution = make(name, parameters, df)
    assert distribution.batch_shape == batch
    sample, log_prob = distribution.experimental_sample_and_log_prob(5, seed=SEED)
    assert sample.shape == [5, *batch, *distribution.event_shape]
    mean = distribution.mean()
    assert mean.shape == [*batch, *distribution.event_shape]
    if name != "SingularWishart":
        assert len(np.unique(sample[..., 0, 0])) == 30
    for i, j in np.ndindex(batch):
        single = distribution[i, j]
        assert single.batch_shape == []
        np.testing.assert_allclose(
            single.log_prob(sample[:, i, j]), log_prob[:, i, j], rtol=1e-6, atol=1e-6
        )
        np.testing.assert_allclose(single.mean(), mean[i, j], atol=1e-12)


def values_and_gradients(
    name: str, parameters: dict[str, tf.Tensor], df: int, value: tf.Tensor
) -> tuple[list[tf.Tensor], dict[str, tf.Tensor]]:
    with tf.GradientTape() as tape:
        tape.watch(parameters)
        distribution = make(name, parameters, df)
        sample, log_prob = distribution.experimental_sample_and_log_prob(3, seed=SEED)
        outputs = [sample, log_prob, distribution.log_prob(value), distribution.mean()]
        total = tf.add_n([tf.reduce_sum(tf.sin(output)) for output in outputs])
    return outputs, tape.gradient(total, parameters)


# Gram matrices that are made of all the parts that the others are made of.
@pytest.mark.parametrize(
    "name", ["ABGeneralisedSingularWishart", "SingularWishart", "InverseWishart"]
)
def test_compiled_for_any_batch_equals_eager(name: str) -> None:
    """Catches what needs a static batch, and what is lost in a compiled function."""
    parameters = as_tensors(random_parameters(name, 3, 2, (2,)))
    value = make(name, parameters, 2).sample(seed=[13, 14])
    signature = tf.nest.map_structure(
        lambda tensor: tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype), [parameters, value]
    )
    compiled = tf.function(
        lambda parameters, value: values_and_gradients(name, parameters, 2, value),
        input_signature=signature,
        autograph=False,
    )
    eager = values_and_gradients(name, parameters, 2, value)
    results = tf.nest.flatten(compiled(parameters, value))
    for a, b in zip(results, tf.nest.flatten(eager), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "name", ["ABGeneralisedSingularWishart", pytest.param("InverseWishart", marks=pytest.mark.slow)]
)
def test_xla(name: str) -> None:
    parameters = as_tensors(random_parameters(name, 3, 2))
    distribution = make(name, parameters, 2)
    value = distribution.sample(2, seed=[13, 14])

    @tf.function(jit_compile=True, autograph=False)
    def compiled(parameters: dict[str, tf.Tensor], value: tf.Tensor) -> tuple[Any, ...]:
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            distribution = make(name, parameters, 2)
            log_prob = distribution.log_prob(value)
        gradients = tape.gradient(log_prob, parameters)
        return log_prob, gradients, distribution.sample(3, seed=SEED)

    log_prob, gradients, sample = compiled(parameters, value)
    np.testing.assert_allclose(distribution.log_prob(value), log_prob, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(distribution.sample(3, seed=SEED), sample, atol=1e-12)
    assert all(np.all(np.isfinite(gradient)) for gradient in gradients.values())


@every_name
def test_single_precision_agrees_with_double(name: str) -> None:
    parameters = random_parameters(name, 3, 2)
    double = make(name, as_tensors(parameters), 2)
    single = make(name, as_tensors(parameters, np.float32), 2)
    assert single.dtype == tf.float32
    value = double.sample(4, seed=SEED)
    narrow = single.log_prob(tf.cast(value, tf.float32))
    np.testing.assert_allclose(narrow, double.log_prob(value), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(single.mean(), double.mean(), rtol=1e-5, atol=1e-5)
    sample, log_prob = single.experimental_sample_and_log_prob(4, seed=SEED)
    np.testing.assert_allclose(single.log_prob(sample), log_prob, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name", GRAM_NAMES)
@pytest.mark.parametrize("df", [19, 20])
def test_densities_of_float32_are_computed_in_float64(name: str, df: int) -> None:
    """Catches Cholesky factors in float32: at M = 20 they are NaN or off by hundreds of nats."""
    parameters = as_tensors(random_parameters(name, 20, df), np.float32)
    single = make(name, parameters, df)
    double = make(name, {key: value.numpy().astype(float) for key, value in parameters.items()}, df)

    sample = single.sample(3, seed=SEED)

    assert sample.dtype == tf.float32
    # Rounding may leave no definite matrix: then the density is NaN in both.
    exact = double.log_prob(tf.cast(sample, tf.float64))
    np.testing.assert_allclose(single.log_prob(sample), exact, rtol=1e-5)


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
