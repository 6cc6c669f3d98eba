"""A fixed set of draws of a deep kernel process, and the predictions that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
from gpflow.base import InputData, MeanAndVariance, RegressionData
from gpflow.likelihoods import Likelihood
from gpflow.utilities import assert_params_false, to_default_float

from gpflow_dwp.base import Seed
from gpflow_dwp.layers import (
    GramLayer,
    InducingPath,
    OutputLayer,
    propagate_targets,
    sample_inducing_path,
)
from gpflow_dwp.linalg import cholesky, factorise, relative_jitter
from gpflow_dwp.models.predictive import (
    mixture_covariance,
    mixture_moments,
    predictive_log_densities,
    predictive_moments,
)
from gpflow_dwp.random import normal, split_seed

__all__ = ["DeepPosterior"]

# Entries of one [S, M, N] block that a batch of predictions may have: 64 MiB in float64.
_MAX_BLOCK_SIZE = 2**23


class DeepPosterior:
    """S draws of all layers at the inducing points, which then serve any number of test points.

    The predictive distribution is an equally weighted mixture over the draws. Predictions at a
    point do not depend on the batch in which it comes. Long inputs are worked through in batches
    whose memory does not grow with their number.

    The draws belong to the parameters that the model had; make a new posterior after training on.

    :param hidden: Hidden layers, bottom first.
    :param output: The output layer.
    :param likelihood: The likelihood.
    :param points: Inducing inputs, [M, D].
    :param num_samples: S.
    :param seed: A stateless seed, [2].
    """

    def __init__(
        self,
        hidden: Sequence[GramLayer],
        output: OutputLayer,
        likelihood: Likelihood,
        points: tf.Tensor,
        num_samples: int,
        seed: Seed,
    ) -> None:
        path_seed, self._target_seed, self._function_seed = split_seed(seed, 3)
        self._hidden = hidden
        self._output = output
        self._likelihood = likelihood
        self.num_samples = num_samples
        self.path: InducingPath = sample_inducing_path(
            hidden, output, points, num_samples, path_seed
        )

    def gram_matrices(self) -> list[tf.Tensor]:
        """Return every hidden layer's Gram matrix of the inducing points, [S, M, M] each."""
        return [draw.gram for draw in self.path.hidden]

    def predict_f(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Return mean and variance of the latent functions.

        :param Xnew: Inputs, [N, D].
        :param full_cov: Whether covariances between the points are wanted (no batches then).
        :param full_output_cov: Whether covariances between the outputs are wanted.
        :return: The mean, [N, Q], and the variance, [N, Q], or covariance: [Q, N, N] with
            ``full_cov``, [N, Q, Q] with ``full_output_cov``, [N, Q, N, Q] with both.
        :raises ValueError: If ``Xnew`` is not a finite matrix with D columns.
        """
        X = self._check_inputs(Xnew)

        def predict(X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            means, variances = self._propagate(X, full_cov=full_cov)
            return mixture_covariance(
                means, variances, full_cov=full_cov, full_output_cov=full_output_cov
            )

        return predict(X) if full_cov else self._in_batches(predict, X)

    def predict_f_components(self, Xnew: InputData) -> MeanAndVariance:
        """Return mean and variance of the latent functions under every draw.

        :param Xnew: Inputs, [N, D].
        :return: Mean and variance, [S, N, Q] each.
        :raises ValueError: If ``Xnew`` is not a finite matrix with D columns.
        """
        return self._components(Xnew, self._propagate_columns)

    def predict_y(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Return mean and variance of observations.

        :param Xnew: Inputs, [N, D].
        :param full_cov: Not supported, as in GPflow.
        :param full_output_cov: Not supported, as in GPflow.
        :return: Mean and variance, [N, P] each.
        :raises ValueError: If ``Xnew`` is not a finite matrix with D columns.
        :raises NotImplementedError: If a covariance is asked for.
        """
        assert_params_false(self.predict_y, full_cov=full_cov, full_output_cov=full_output_cov)
        X = self._check_inputs(Xnew)
        return self._in_batches(lambda X: mixture_moments(*self._observe(X)), X)

    def predict_y_components(self, Xnew: InputData) -> MeanAndVariance:
        """Return mean and variance of observations under every draw.

        :param Xnew: Inputs, [N, D].
        :return: Mean and variance, [S, N, P] each.
        :raises ValueError: If ``Xnew`` is not a finite matrix with D columns.
        """
        return self._components(Xnew, self._observe)

    def predict_log_density(
        self, data: RegressionData, full_cov: bool = False, full_output_cov: bool = False
    ) -> tf.Tensor:
        """Return the logarithm of the mixture's predictive density of each observation.

        :param data: Inputs, [N, D], and observations, [N, P].
        :param full_cov: Not supported, as in GPflow.
        :param full_output_cov: Not supported, as in GPflow.
        :return: [N].
        :raises ValueError: If the inputs are not a finite matrix with D columns, or inputs and
            observations have different lengths.
        :raises NotImplementedError: If a covariance is asked for.
        """
        assert_params_false(
            self.predict_log_density, full_cov=full_cov, full_output_cov=full_output_cov
        )
        X = self._check_inputs(data[0])
        Y = to_default_float(data[1])
        if Y.shape.rank != 2 or not Y.shape[:1].is_compatible_with(X.shape[:1]):
            raise ValueError(
                f"data must hold X [N, D] and Y [N, P] of one length, got {X.shape} and {Y.shape}."
            )

        def predict(X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
            densities = predictive_log_densities(self._likelihood, X, Y, *self._propagate(X))
            count = tf.cast(tf.shape(densities)[0], densities.dtype)
            return tf.reduce_logsumexp(densities, axis=0) - tf.math.log(count)

        return self._in_batches(predict, X, Y)

    def sample_f(self, Xnew: InputData, full_cov: bool = True) -> tf.Tensor:
        """Draw the latent functions, one from each of the S draws.

        :param Xnew: Inputs, [N, D].
        :param full_cov: Whether each draw is one coherent function of all points, or independent
            from point to point.
        :return: [S, N, Q].
        :raises ValueError: If ``Xnew`` is not a finite matrix with D columns.
        """
        X = self._check_inputs(Xnew)
        means, variances = self._propagate(X, full_cov=full_cov)
        shape = tf.concat([[self.num_samples], tf.shape(means)[1:]], axis=0)
        noise = normal(shape, self._function_seed, means.dtype)
        if not full_cov:
            return means + tf.sqrt(variances)[..., None] * noise
        # The kernel's own variance is not at hand here; the prior's is at least the posterior's.
        jitter = relative_jitter(variances, np.sqrt(np.finfo(means.dtype.as_numpy_dtype).eps))
        covariance = factorise(variances, jitter, name="the predictive covariance")
        return means + tf.matmul(cholesky(covariance), noise)

    def _propagate(self, X: tf.Tensor, *, full_cov: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        return propagate_targets(
            self._hidden,
            self._output,
            self.path,
            X,
            self.num_samples,
            self._target_seed,
            full_cov=full_cov,
        )

    def _propagate_columns(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        means, variances = self._propagate(X)
        return means, tf.broadcast_to(variances[..., None], tf.shape(means))

    def _observe(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return predictive_moments(self._likelihood, X, *self._propagate(X))

    def _components(
        self, Xnew: InputData, predict: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
    ) -> MeanAndVariance:
        def points_first(X: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return tuple(tf.transpose(moment, [1, 0, 2]) for moment in predict(X))

        mean, variance = self._in_batches(points_first, self._check_inputs(Xnew))
        return tf.transpose(mean, [1, 0, 2]), tf.transpose(variance, [1, 0, 2])

    def _in_batches(self, predict: Callable[..., tf.Tensor], *rows: tf.Tensor) -> tf.Tensor:
        """Call ``predict`` on batches of rows and join what it returns along the first axis."""
        num_inducing = int(self.path.points.shape[0])
        batch_size = max(1, _MAX_BLOCK_SIZE // (self.num_samples * num_inducing))
        num_points = rows[0].shape[0]
        if num_points is None or num_points <= batch_size:
            return predict(*rows)
        batches = [
            predict(*(row[start : start + batch_size] for row in rows))
            for start in range(0, num_points, batch_size)
        ]
        return tf.nest.map_structure(lambda *parts: tf.concat(parts, axis=0), *batches)

    def _check_inputs(self, Xnew: InputData) -> tf.Tensor:
        X = to_default_float(Xnew)
        width = self.path.points.shape[1]
        if X.shape.rank != 2 or not X.shape[1:].is_compatible_with([width]):
            raise ValueError(
                f"Xnew must be a matrix with {width} columns, as the training inputs had, "
                f"got shape {tuple(X.shape)}."
            )
        if tf.executing_eagerly():
            finite = tf.math.is_finite(X).numpy()
            if not finite.all():
                row, column = np.argwhere(~finite)[0]
                raise ValueError(
                    f"Xnew must be finite, got {X[row, column].numpy()} in row {row}, "
                    f"column {column} (counted from 0)."
                )
        return X
