"""Predictions from a fixed set of draws: what the posteriors of all models share."""

from __future__ import annotations

import abc
import copy
import functools
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import InputData, MeanAndVariance, RegressionData
from gpflow.keras import tf_keras
from gpflow.likelihoods import Likelihood
from gpflow.utilities import assert_params_false

from gpflow_dwp.base import Seed
from gpflow_dwp.likelihoods import NormalMixture
from gpflow_dwp.likelihoods.observed import sample_observations
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.linalg import cholesky, factorise, relative_jitter
from gpflow_dwp.models.data_checks import check_data, check_inputs
from gpflow_dwp.models.predictive import (
    mixture_moments,
    predictive_log_densities,
    predictive_moments,
    warped_moments,
)
from gpflow_dwp.random import fold_in, normal
from gpflow_dwp.validation import as_weighted, check_memory

__all__ = ["MixturePosterior", "snapshot"]

# Entries that an array [S, M, N] over a block of N points may have: 16 MiB in float64.
_MAX_BLOCK_SIZE = 2**21

Parts = TypeVar("Parts")


def snapshot(parts: Parts) -> Parts:
    """Copy parts of a model, with constants in place of parameters; gradients flow through these.

    Keras layers and compiled functions in a kernel stay what they are, and so do their weights. In
    a function that is being compiled all parts do: all of it sees the parameters of one moment.

    :param parts: A module, or a list or tuple of modules.
    """
    if not tf.executing_eagerly():
        return parts
    holder = gpflow.Module()
    holder.parts = parts
    memo: dict[int, Any] = {}
    for module in holder.submodules:
        if isinstance(module, tf_keras.layers.Layer):
            memo[id(module)] = module
        functions = (v for v in vars(module).values() if hasattr(v, "get_concrete_function"))
        memo |= {id(function): function for function in functions}
    with _lock:  # the bijectors of parameters remember what they have made
        memo |= {id(each): tf.convert_to_tensor(each) for each in holder.parameters}
    return copy.deepcopy(parts, memo)


_lock = threading.Lock()


class MixturePosterior(abc.ABC):
    """S draws of what is global in a model, which then serve any number of test points.

    The predictive distribution is an equally weighted mixture over the draws. Moments and densities
    are one smooth function of the point, which does not depend on the others: where points are not
    drawn jointly, each draw has the same random numbers at all of them. Their Monte Carlo errors
    are therefore alike at nearby points, and fall as 1/√S. Long inputs are worked through in blocks
    by one compiled function, in memory that does not grow with their number.

    Methods take inputs, ``Xnew``, [N, D], and raise a :class:`ValueError` if they are not finite.
    ``full_cov`` of what observations do and ``full_output_cov`` raise a NotImplementedError.

    A posterior keeps the parameters that the model had, whatever becomes of the model, but for the
    weights of Keras layers: make another one after training on.

    :param likelihood: The likelihood, of constants: see :func:`snapshot`.
    :param num_inputs: Number of input columns, D.
    :param num_outputs: Number of latent functions, Q; None where that is not known.
    :param num_inducing: M, or whatever else there is for each draw and point: for the size of
        batches.
    :param num_samples: Number of joint draws, S.
    :param num_distinct: How many of them differ; None for all.
    :param function_seed: A stateless seed for draws of f given its moments, [2].
    :param mixing: W, [Q, L], of a posterior whose outputs mix L functions.
    :ivar is_kept: Whether all predictions are compiled, and not those of long inputs alone.
    """

    is_kept = False

    def __init__(
        self,
        likelihood: Likelihood,
        *,
        num_inputs: int,
        num_outputs: int | None,
        num_inducing: int,
        num_samples: int,
        num_distinct: int | None = None,
        function_seed: Seed,
        mixing: tf.Tensor | None = None,
    ) -> None:
        self.likelihood = likelihood
        self.num_inputs, self.num_outputs = num_inputs, num_outputs
        self._num_inducing = num_inducing
        self.num_samples = num_samples
        self._function_seed = function_seed
        self._mixing = mixing
        self._likelihood_seed = fold_in(function_seed, 1)
        self._num_distinct = num_samples if num_distinct is None else num_distinct
        self._compiled: dict[Hashable, Callable[..., Any]] = {}

    def predict_f(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Return mean and variance of the latent functions.

        Both are Monte Carlo estimates; their standard errors follow from the spread of
        :meth:`predict_f_components`. With ``full_cov`` the points are
        drawn jointly, without it each on its own: the two estimate the same moments with other
        noise, so that at one seed they differ by some standard errors.

        :param full_cov: Whether covariances between the points are wanted (no blocks then).
        :return: The mean, [N, Q], and the variance, [N, Q], or covariance, [Q, N, N].
        :raises ValueError: If a joint covariance would not fit into the machine's memory.
        """
        assert_params_false(self.predict_f, full_output_cov=full_output_cov)
        X = self._checked_points(Xnew, full_cov=full_cov)
        if full_cov:
            return mixture_moments(*self._propagate(X, full_cov=True), full_cov=True)
        return self._in_blocks("f", lambda X: mixture_moments(*self._propagate(X)), X)

    def predict_f_components(self, Xnew: InputData) -> MeanAndVariance:
        """Return mean and variance of the latent functions under every draw.

        :return: Mean and variance, [S, N, Q] each.
        """
        return self._components("f components", Xnew, self._propagate)

    def predict_y(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Return mean and variance of observations.

        :return: Mean and variance, [N, P] each.
        """
        assert_params_false(self.predict_y, full_cov=full_cov, full_output_cov=full_output_cov)
        X = check_inputs(self, Xnew, "Xnew")
        return self._in_blocks("y", lambda X: mixture_moments(*self._observe(X)), X)

    def predict_warped_components(self, Xnew: InputData) -> MeanAndVariance:
        """Return mean and variance of g(y) under every draw, of a :class:`WarpedGaussian`.

        g(y) is a mixture of normals with these moments, whose quantiles g⁻¹ turns into those of y;
        of a :class:`NormalMixture`, such as :class:`WarpedStudentT`, of S for each of its K nodes,
        which have weights. Of any other likelihood they are those of y.

        :return: Mean and variance, [S, N, P] or [K S, N, P] each.
        """

        is_mixture = isinstance(self.likelihood, NormalMixture)

        def observe(X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            if not is_mixture and warp_of(self.likelihood) is None:
                return self._observe(X)
            return warped_moments(self.likelihood, X, *self._propagate(X))

        return self._components("warped components", Xnew, observe)

    def predict_log_density(
        self, data: RegressionData, full_cov: bool = False, full_output_cov: bool = False
    ) -> tf.Tensor:
        """Return the logarithm of the mixture's predictive density of each observation.

        :param data: Inputs, [N, D], and observations, [N, P], of which NaN are missing.
        :return: [N]; NaN where a row has no observation.
        :raises ValueError: As :func:`check_data` does.
        """
        assert_params_false(
            self.predict_log_density, full_cov=full_cov, full_output_cov=full_output_cov
        )
        X, Y = check_data(self, *as_weighted(data)[:2])

        def predict(X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
            densities = predictive_log_densities(
                self.likelihood, X, Y, *self._propagate(X), seed=self._likelihood_seed
            )
            count = tf.cast(tf.shape(densities)[0], densities.dtype)
            mixture = tf.reduce_logsumexp(densities, axis=0) - tf.math.log(count)
            is_missing = tf.reduce_all(tf.math.is_nan(Y), axis=1)
            return tf.where(is_missing, tf.constant(np.nan, mixture.dtype), mixture)

        return self._in_blocks("log density", predict, X, Y)

    @tf.autograph.experimental.do_not_convert
    def sample_f(self, Xnew: InputData, full_cov: bool = True) -> tf.Tensor:
        """Draw the latent functions, one from each of the S draws.

        :param full_cov: Whether each draw is one coherent function of all points, or drawn point by
            point, which is quicker: right at each point, but not between points.
        :return: [S, N, Q].
        :raises ValueError: If a joint covariance would not fit into the machine's memory.
        """
        return self._sample_functions(
            self._checked_points(Xnew, full_cov=full_cov), full_cov=full_cov
        )

    def _sample_functions(self, X: tf.Tensor, *, full_cov: bool) -> tf.Tensor:
        """What :meth:`sample_f` returns; for posteriors that draw all at once to replace."""
        means, variances = (
            self._propagate(X, full_cov=True) if full_cov else self.predict_f_components(X)
        )
        width = means.shape[-1]
        if self._mixing is not None:
            width = self._mixing.shape[1]
            unmixed = functools.partial(self._propagate, full_cov=full_cov, mixed=False)
            _, variances = unmixed(X) if full_cov else self._components("unmixed", X, unmixed)
        shape = [self.num_samples, tf.shape(means)[1], width]
        noise = normal(shape, self._function_seed, means.dtype)
        if not full_cov:
            deviations = tf.sqrt(variances) * noise
        else:
            # Rounding is of the prior's variance, which is not at hand, and may be far larger.
            jitter = relative_jitter(variances, np.sqrt(np.finfo(means.dtype.as_numpy_dtype).eps))
            name = "the predictive covariance"
            tril = cholesky(factorise(variances, jitter, name=name, max_attempts=7))
            if variances.shape.rank == 3:
                deviations = tf.matmul(tril, noise)
            else:
                by_column = tf.linalg.matvec(tril, tf.linalg.matrix_transpose(noise))
                deviations = tf.linalg.matrix_transpose(by_column)
        if self._mixing is not None:
            deviations = tf.matmul(deviations, self._mixing, transpose_b=True)
        return means + deviations

    def sample_y(self, Xnew: InputData, full_cov: bool = False) -> tf.Tensor:
        """Draw observations, one at each point for each of the S draws.

        :param full_cov: Whether the latent functions of a draw are coherent, as in
            :meth:`sample_f`, or drawn point by point, which is quicker.
        :return: [S, N, P], as in training data: labels, [S, N, 1], of classifiers.
        :raises NotImplementedError: If it is not known how to draw from the likelihood.
        """
        X = check_inputs(self, Xnew, "Xnew")
        functions = self.sample_f(X, full_cov)
        return sample_observations(self.likelihood, X, functions, fold_in(self._function_seed, 0))

    @abc.abstractmethod
    def _propagate(
        self, X: tf.Tensor, *, full_cov: bool = False, mixed: bool = True
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Mean [S, N, Q] and variance, [S, N] or [S, N, Q], of f at X under every draw.

        With ``full_cov`` the covariance between points, [S, N, N] or [S, Q, N, N]. Not ``mixed``:
        of the L functions that the outputs mix, where there is a ``mixing``.
        """

    def _observe(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return predictive_moments(
            self.likelihood, X, *self._propagate(X), seed=self._likelihood_seed
        )

    def _shared_normal(self, X: tf.Tensor, seed: Seed, width: int) -> tf.Tensor:
        """Standard normal numbers of each draw, the same at all points, [S, N, ``width``]."""
        numbers = normal([self.num_samples, 1, width], seed, X.dtype)
        return tf.broadcast_to(numbers, [self.num_samples, tf.shape(X)[0], width])

    def _checked_points(self, Xnew: InputData, *, full_cov: bool) -> tf.Tensor:
        X = check_inputs(self, Xnew, "Xnew")
        num_points = X.shape[0]
        if full_cov and num_points is not None and not tf.is_tensor(self._num_distinct):
            try:
                check_memory(self._num_distinct, *[num_points] * 2, rows_of_Xnew=num_points)
            except ValueError as error:
                raise ValueError(f"{error} full_cov=False takes no such arrays.") from None
        return X

    def _components(
        self,
        name: str,
        Xnew: InputData,
        predict: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
    ) -> MeanAndVariance:
        def points_first(X: tf.Tensor) -> tuple[tf.Tensor, ...]:
            means, variances = predict(X)
            columns = variances if variances.shape.rank == 3 else variances[..., None]
            moments = means, tf.broadcast_to(columns, tf.shape(means))
            return tuple(tf.transpose(moment, [1, 0, 2]) for moment in moments)

        mean, variance = self._in_blocks(name, points_first, check_inputs(self, Xnew, "Xnew"))
        return tf.transpose(mean, [1, 0, 2]), tf.transpose(variance, [1, 0, 2])

    @tf.autograph.experimental.do_not_convert
    def _in_blocks(
        self, name: Hashable, predict: Callable[..., tf.Tensor], *rows: tf.Tensor
    ) -> tf.Tensor:
        """Call ``predict`` on blocks of rows and join what it returns along the first axis.

        :param name: Stands for ``predict``, which is compiled once.
        """
        num_points = rows[0].shape[0]
        if num_points is None or tf.is_tensor(self.num_samples):
            return predict(*rows)
        size = max(1, _MAX_BLOCK_SIZE // (self._num_distinct * self._num_inducing))
        if num_points <= size and not self.is_kept:
            return predict(*rows)
        compiled = self._compiled.get(name)
        if compiled is None:
            signature = [tf.TensorSpec([None, *part.shape[1:]], part.dtype) for part in rows]
            traced = tf.function(predict, autograph=False).get_concrete_function(*signature)
            compiled = self._compiled.setdefault(name, traced)
        if num_points <= size:
            return compiled(*rows)
        blocks = [
            compiled(*(part[start : start + size] for part in rows))
            for start in range(0, num_points, size)
        ]
        return tf.nest.map_structure(lambda *parts: tf.concat(parts, axis=0), *blocks)
