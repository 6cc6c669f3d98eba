"""A deep model behind the interface of Trieste, a library of Bayesian optimisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

__all__ = ["BayesianOptimizationModel", "TrajectorySampler"]


class BayesianOptimizationModel:
    """A deep kernel process with the methods that Trieste (version 4) asks of a trainable model.

    Query points are [..., D] and functions [..., E], in raw units. Predictions hold one set of
    draws until the next :meth:`optimize`, so that acquisition functions are smooth. Compiled code
    calls back for them, and so follows the model.

    :param build: Builds a model for standardised data (X, Y).
    :param dataset: The first observations, as Trieste's ``Dataset``.
    :param num_samples: Number of draws that predictions are mixtures over.
    :param seed: For training and for the draws of predictions.
    :param fit_arguments: Of :func:`fit` in every :meth:`optimize`; ``num_steps`` is 1,000 if
        nothing else is said.
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
        return self._by_row("function_moments", query_points)

    def predict_y(self, query_points: TensorType) -> MeanAndVariance:
        """Return mean and variance of observations, noise included, [..., E] each."""
        return self._by_row("moments", query_points)

    def predict_joint(self, query_points: TensorType) -> MeanAndVariance:
        """Return mean [..., B, E] and covariance [..., E, B, B] at B points, [..., B, D]."""

        def predict(points: tf.Tensor) -> list[tf.Tensor]:
            return _by_matrix(lambda X: self._units.joint_moments(self._posterior, X), points)

        *leading, size, _ = (points := to_default_float(query_points)).shape
        shapes = [*leading, size, self._width], [*leading, self._width, size, size]
        return _call_back(predict, points, *shapes)

    def covariance_between_points(self, first: TensorType, second: TensorType) -> tf.Tensor:
        """Return the function's covariance, [..., E, N, M], between [..., N, D] and [M, D]."""
        first, second, size = to_default_float(first), to_default_float(second), first.shape[-2]
        shape = tf.concat([tf.shape(first)[:-2], tf.shape(second)], axis=0)
        points = tf.concat([first, tf.broadcast_to(second, shape)], axis=-2)
        return self.predict_joint(points)[1][..., :size, size:]

    def sample(self, query_points: TensorType, num_samples: int) -> tf.Tensor:
        """Draw S functions, each coherent over the N points [..., N, D]: [..., S, N, E]."""

        def draw(points: tf.Tensor) -> list[tf.Tensor]:
            posterior = self.model.posterior(num_samples)
            return _by_matrix(lambda X: [self._units.sample_functions(posterior, X)], points)

        *leading, size, _ = (points := to_default_float(query_points)).shape
        return _call_back(draw, points, [*leading, num_samples, size, self._width])[0]

    def trajectory_sampler(self) -> TrajectorySampler:
        """Return what draws functions that can be evaluated anywhere."""
        return TrajectorySampler(self)

    def get_observation_noise(self) -> tf.Tensor:
        """Return the noise variance of a Gaussian likelihood, in squared raw units, [E]."""
        noise = self.model.likelihood.variance * tf.square(to_default_float(self._outputs.scale))
        return tf.reshape(noise, [self._width])

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
        self._units = RawUnits(self.model, inputs, self._outputs)
        self._posterior = self.model.posterior(self._num_samples, seed=self._seed)
        return data

    def _by_row(self, method: str, points: TensorType) -> MeanAndVariance:
        def predict(points: tf.Tensor) -> list[tf.Tensor]:
            rows = tf.reshape(points, [-1, points.shape[-1]])
            shape = [*points.shape[:-1], self._width]
            moments = getattr(self._units, method)(self._posterior, rows)
            return [tf.reshape(moment, shape) for moment in moments]

        points = to_default_float(points)
        return _call_back(predict, points, *[[*points.shape[:-1], self._width]] * 2)


class TrajectorySampler:
    """Draws functions of a model: a trajectory takes [N, B, D] to [N, B, E], B functions."""

    def __init__(self, model: BayesianOptimizationModel) -> None:
        self._model = model

    def get_trajectory(self) -> Callable[[TensorType], tf.Tensor]:
        """Draw B functions of the model as it is now; the first call says what B is."""
        drawn: list[FunctionDraws] = []
        units = self._model._units

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


def _by_matrix(
    predict: Callable[[tf.Tensor], Sequence[tf.Tensor]], points: tf.Tensor
) -> list[tf.Tensor]:
    """Call a function on each matrix of points, [..., B, D], and stack what it returns."""
    matrices = tf.unstack(tf.reshape(points, [-1, *points.shape[-2:]]))
    results = zip(*map(predict, matrices), strict=True)
    return [tf.reshape(tf.stack(each), [*points.shape[:-2], *each[0].shape]) for each in results]


def _call_back(
    function: Callable[[tf.Tensor], Any], points: tf.Tensor, *shapes: Sequence[int | None]
) -> Any:
    """Call a function with the state that it has when compiled code runs, not when it is traced."""
    if tf.executing_eagerly():
        return function(points)
    results = tf.py_function(function, [points], [default_float()] * len(shapes))
    return tuple(map(tf.ensure_shape, results, shapes))
