"""A deep model behind the interface of Trieste, a library of Bayesian optimisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from gpflow import default_float
from gpflow.base import MeanAndVariance, RegressionData, TensorType
from gpflow.utilities import to_default_float

from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models import DeepKernelProcess, FunctionDraws
from gpflow_dwp.training import TrainingHistory, fit
from gpflow_dwp.validation import check_arrays

__all__ = ["BayesianOptimizationModel"]


class BayesianOptimizationModel:
    """A deep kernel process with the methods that Trieste (version 4) asks of a trainable model.

    Query points are [..., D] and functions [..., E], in raw units. Predictions hold one set of
    draws until the next :meth:`optimize`. Compiled code calls back, and so follows the model.

    :param build: Builds a model for standardised data (X, Y).
    :param dataset: The first observations, as Trieste's ``Dataset``.
    :param num_samples: Number of draws that predictions are mixtures over.
    :param seed: For training and for the draws of predictions.
    :param fit_arguments: Of :func:`fit` in every :meth:`optimize`, by default 1,000 steps.
    :raises ValueError: If the data are not two finite matrices of one length, or ``build`` returns
        a model of warped observations, or with more functions than columns of them.
    """

    def __init__(
        self,
        build: Callable[[RegressionData], DeepKernelProcess],
        dataset: Any,
        *,
        num_samples: int = 100,
        seed: int = 0,
        **fit_arguments: Any,
    ) -> None:
        self._build, self._num_samples, self._seed = build, num_samples, seed
        self._fit_arguments = {"num_steps": 1_000, "progress": False, **fit_arguments}
        self._rebuild(dataset)

    def predict(self, query_points: TensorType) -> MeanAndVariance:
        """Return mean and variance of the function, [..., E] each."""
        return self._by_row(lambda X: self._raw.function_moments(self._posterior, X), query_points)

    def predict_y(self, query_points: TensorType) -> MeanAndVariance:
        """Return mean and variance of observations, noise included, [..., E] each."""
        return self._by_row(lambda X: self._raw.moments(self._posterior, X), query_points)

    def predict_joint(self, query_points: TensorType) -> MeanAndVariance:
        """Return mean [..., B, E] and covariance [..., E, B, B] at B points, [..., B, D]."""

        def predict(X: tf.Tensor) -> MeanAndVariance:
            return self._raw.joint_moments(self._posterior, X)

        size, width = query_points.shape[-2], self._width
        return self._by_matrix(predict, query_points, [size, width], [width, size, size])

    def sample(self, query_points: TensorType, num_samples: int) -> tf.Tensor:
        """Draw S functions, each coherent over the N points [..., N, D]: [..., S, N, E]."""

        def draw(X: tf.Tensor) -> list[tf.Tensor]:
            return [self._raw.sample_functions(self.model.posterior(num_samples), X)]

        shape = [num_samples, query_points.shape[-2], self._width]
        return self._by_matrix(draw, query_points, shape)[0]

    def get_observation_noise(self) -> tf.Tensor:
        """Return the noise variance of a Gaussian likelihood, in squared raw units, [E]."""
        noise = self.model.likelihood.variance * tf.square(to_default_float(self._outputs.scale))
        return tf.reshape(noise, [self._width])

    def trajectory_sampler(self) -> BayesianOptimizationModel:
        """Return what draws functions that can be evaluated anywhere: the model itself."""
        return self

    def get_trajectory(self) -> Callable[[TensorType], tf.Tensor]:
        """Draw B functions, from [N, B, D] to [N, B, E]; the first call says what B is."""
        drawn: list[FunctionDraws] = []
        units = self._raw

        @tf.autograph.experimental.do_not_convert
        def trajectory(x: TensorType) -> tf.Tensor:
            points = tf.transpose(to_default_float(x), [1, 0, 2])
            if not drawn:
                with tf.init_scope():  # also where the first call is compiled
                    drawn.append(FunctionDraws(units.model, points.shape[0]))
            return tf.transpose(units.to_raw(drawn[0](units.to_model(points))), [1, 0, 2])

        return trajectory

    def resample_trajectory(self, trajectory: Any) -> Callable[[TensorType], tf.Tensor]:
        """Draw other functions, of the model as it is now; those given stay as they are."""
        return self.get_trajectory()

    update_trajectory = resample_trajectory

    def update(self, dataset: Any) -> None:
        """Take in all data so far without training, which a deep model's posterior needs."""
        self.model.num_data = len(dataset.query_points)

    def optimize(self, dataset: Any) -> TrainingHistory:
        """Build the model anew for all data so far, with their inducing points, and train it."""
        data = self._rebuild(dataset)
        history = fit(self.model, data, seed=self._seed, **self._fit_arguments)
        self._posterior = self.model.posterior(self._num_samples, seed=self._seed)
        return history

    def log(self, dataset: Any = None) -> None:
        """Log nothing: what Trieste logs is of its own models."""

    def _rebuild(self, dataset: Any) -> RegressionData:
        X, Y = check_arrays(dataset.query_points, dataset.observations)
        inputs, self._outputs, self._width = Standardiser.fit(X), Standardiser.fit(Y), Y.shape[1]
        data = inputs.transform(X), self._outputs.transform(Y)
        self.model = self._build(data)
        if warp_of(self.model.likelihood) or self.model.num_outputs != self._width:
            raise ValueError("build must return a model of one function a column, not warped.")
        self._raw = RawUnits(self.model, inputs, self._outputs)
        self._posterior = self.model.posterior(self._num_samples, seed=self._seed)
        return data

    def _by_row(self, predict: Callable[..., Any], points: TensorType) -> MeanAndVariance:
        rows, width = tf.reshape(points, [-1, points.shape[-1]]), self._width
        mean, variance = self._by_matrix(predict, rows, [None, width], [None, width])
        shape = tf.concat([tf.shape(points)[:-1], [width]], axis=0)
        return tf.reshape(mean, shape), tf.reshape(variance, shape)

    def _by_matrix(self, predict: Callable[..., Any], points: Any, *shapes: list[Any]) -> Any:
        """Call a function on matrices of points, [..., B, D]; when compiled code runs, anew."""

        def of_all(points: tf.Tensor) -> list[tf.Tensor]:
            matrices = tf.unstack(tf.reshape(points, [-1, *points.shape[-2:]]))
            results = map(tf.stack, zip(*map(predict, matrices), strict=True))
            return [tf.reshape(each, [*points.shape[:-2], *each.shape[1:]]) for each in results]

        points = to_default_float(points)
        if tf.executing_eagerly():
            return of_all(points)
        results = tf.py_function(of_all, [points], [default_float()] * len(shapes))
        return list(map(tf.ensure_shape, results, ([*points.shape[:-2], *s] for s in shapes)))
