"""Draws of observations given functions, for every likelihood that says how."""

from __future__ import annotations

from functools import singledispatch

import tensorflow as tf
from check_shapes import check_shapes
from gpflow import likelihoods
from gpflow.likelihoods import Likelihood
from gpflow.utilities.parameter_or_function import evaluate_parameter_or_function

from gpflow_dwp.base import Seed
from gpflow_dwp.likelihoods import (
    GammaGaussian,
    HeteroskedasticGaussian,
    WarpedGaussian,
    WarpedStudentT,
)
from gpflow_dwp.random import normal, split_seed, uniform
from gpflow_dwp.validation import is_known

__all__ = ["sample_observations"]


@check_shapes("X: [N, D]", "functions: [S, N, Q]", "seed: [2]", "return: [S, N, P]")
def sample_observations(
    likelihood: Likelihood, X: tf.Tensor, functions: tf.Tensor, seed: Seed
) -> tf.Tensor:
    """Draw y_n from p(y_n | f_n), independently for each draw of f.

    Observations are as in training data: labels from 0, [S, N, 1], of classifiers.

    :param likelihood: One of GPflow's or of this package's; or one of the user's that says how, by
        a method ``sample_observations(X, F, seed)``, from X [N, D] and F [N, Q] to [N, P].
    :param X: Inputs, which a likelihood may read, [N, D].
    :param functions: Draws of f, [S, N, Q].
    :param seed: A stateless seed, [2].
    :raises NotImplementedError: If it is not known how to draw from the likelihood.
    """
    shape = tf.shape(functions)
    rows = tf.reshape(functions, [-1, functions.shape[-1]])
    draw = _sample if is_known(likelihood, Likelihood) else _sample_itself
    drawn = draw(likelihood, tf.tile(X, [shape[0], 1]), rows, seed)
    unfolded = tf.reshape(drawn, tf.concat([shape[:2], tf.shape(drawn)[1:]], axis=0))
    return tf.cast(unfolded, functions.dtype)


def _sample_itself(likelihood: Likelihood, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
    if hasattr(likelihood, "sample_observations"):
        return likelihood.sample_observations(X, F, seed)
    raise NotImplementedError(
        f"Observations of the likelihood {type(likelihood).__name__} cannot be drawn; its latent "
        "functions can, with predict_f_samples."
    )


# One observation for each row, [N, P], from X [N, D] and F [N, Q].
_sample = singledispatch(_sample_itself)


@_sample.register(likelihoods.Gaussian)
@_sample.register(HeteroskedasticGaussian)
def _normal(likelihood: Likelihood, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
    mean, variance = likelihood.conditional_mean(X, F), likelihood.conditional_variance(X, F)
    return mean + tf.sqrt(variance) * normal(tf.shape(mean), seed, F.dtype)


@_sample.register
def _gamma_gaussian(likelihood: GammaGaussian, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
    normal_seed, gamma_seed = split_seed(seed, 2)
    posterior = likelihood.precision
    shape = tf.fill([tf.shape(F)[0], 1], tf.cast(posterior.concentration, F.dtype))
    precision = _gamma(shape, gamma_seed) / tf.cast(posterior.rate, F.dtype)
    return F + normal(tf.shape(F), normal_seed, F.dtype) / tf.sqrt(precision)


@_sample.register
def _warped(likelihood: WarpedGaussian, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
    scale = tf.sqrt(likelihood.warped_mean_and_variance(X, F, tf.zeros_like(F))[1])
    if not isinstance(likelihood, WarpedStudentT):
        return likelihood.warp.inverse(F + scale * normal(tf.shape(F), seed, F.dtype))
    df = tf.cast(likelihood.df, F.dtype)
    return likelihood.warp.inverse(F + scale * tf.sqrt((df - 2.0) / df) * _student(F, df, seed))


@_sample.register
def _student_t(
    likelihood: likelihoods.StudentT, X: tf.Tensor, F: tf.Tensor, seed: Seed
) -> tf.Tensor:
    scale = evaluate_parameter_or_function(
        likelihood.scale, X, lower_bound=likelihood.scale_lower_bound
    )
    return F + scale * _student(F, tf.cast(likelihood.df, F.dtype), seed)


@_sample.register
def _poisson(likelihood: likelihoods.Poisson, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
    rate = likelihood.conditional_mean(X, F)
    return tf.random.stateless_poisson(tf.shape(F), seed, rate, dtype=F.dtype)


@_sample.register
def _bernoulli(
    likelihood: likelihoods.Bernoulli, X: tf.Tensor, F: tf.Tensor, seed: Seed
) -> tf.Tensor:
    return uniform(tf.shape(F), seed, F.dtype) < likelihood.conditional_mean(X, F)


@_sample.register(likelihoods.Softmax)
@_sample.register(likelihoods.MultiClass)
def _classes(likelihood: Likelihood, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
    cumulative = tf.cumsum(likelihood.conditional_mean(X, F), axis=-1)[:, :-1]
    passed = uniform([tf.shape(F)[0], 1], seed, F.dtype) > cumulative
    return tf.reduce_sum(tf.cast(passed, F.dtype), axis=-1, keepdims=True)


def _student(F: tf.Tensor, df: tf.Tensor, seed: Seed) -> tf.Tensor:
    """Numbers of Student's t of the shape of F: a normal over the root of χ²/df."""
    normal_seed, gamma_seed = split_seed(seed, 2)
    precision = _gamma(tf.fill(tf.shape(F), 0.5 * df), gamma_seed) / (0.5 * df)
    return normal(tf.shape(F), normal_seed, F.dtype) / tf.sqrt(precision)


def _gamma(concentration: tf.Tensor, seed: Seed) -> tf.Tensor:
    return tf.random.stateless_gamma(
        tf.shape(concentration), seed, concentration, dtype=concentration.dtype
    )
