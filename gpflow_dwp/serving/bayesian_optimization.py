"""Models behind the interface of Bayesian-optimisation libraries of this ecosystem."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import tensorflow as tf
from gpflow import default_float
from gpflow.base import MeanAndVariance, RegressionData, TensorType
from gpflow.utilities import to_default_float

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.data.table import check_arrays
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models import DeepKernelProcess, FunctionDraws
from gpflow_dwp.models.mixture_posterior import MixturePosterior
from gpflow_dwp.serving.trajectories import TrajectorySampler
from gpflow_dwp.training import TrainingHistory, fit
from gpflow_dwp.validation import check_instance, check_integers

__all__ = ["BayesianOptimizationModel", "ObservedData"]

_LOGGER = logging.getLogger(__name__)


@runtime_checkable
class ObservedData(Protocol):
    """What was observed so far; Trieste's ``Dataset`` is one."""

    @property
    def query_points(self) -> TensorType:
        """Inputs, [N, D]."""

    @property
    def observations(self) -> TensorType:
        """Values, [N, E]."""


class BayesianOptimizationModel:
    """A deep Wishart process, or another deep model, as Bayesian-optimisation libraries want it.

    It has the methods of Trieste's ``TrainableProbabilisticModel``, and those that predict jointly
    and sample trajectories, with the shapes that Trieste (version 4) documents; no class of
    Trieste is needed. Inputs and observations are in raw units; standardisers are fitted to the
    data of every :meth:`optimize`. Predictions hold one set of draws fixed until then, with random
    numbers that all points share, so that acquisition functions are smooth functions of their
    inputs. Acquisition functions that are compiled before :meth:`optimize` see the model after it:
    compiled code calls back for its predictions, which have gradients, but cannot be saved with it.
    Of a likelihood with more functions than columns of observations, such as a
    :class:`HeteroskedasticGaussian`, the function is the first E, in the observations' units.

    >>> from functools import partial
    >>> from types import SimpleNamespace
    >>> from gpflow_dwp.models import build_deep_wishart_process
    >>> X = np.linspace(0.0, 1.0, 12)[:, None]
    >>> data = SimpleNamespace(query_points=X, observations=np.sin(6.0 * X))
    >>> build = partial(build_deep_wishart_process, depth=2, num_inducing=12)
    >>> model = BayesianOptimizationModel(build, data, num_steps=20)
    >>> history = model.optimize(data)
    >>> mean, variance = model.predict(X[:5])
    >>> mean.shape
    TensorShape([5, 1])
    >>> trajectory = model.trajectory_sampler().get_trajectory()
    >>> trajectory(np.zeros([7, 3, 1])).shape  # three functions, at seven points each
    TensorShape([7, 3, 1])

    :param build: Builds a model for standardised data (X, Y), such as
        ``functools.partial(build_deep_wishart_process, depth=2)``.
    :param dataset: The first observations.
    :param num_steps: Steps of training in every :meth:`optimize`.
    :param num_samples: Number of draws that predictions, S, are mixtures over.
    :param fit_arguments: Further arguments of :func:`fit`, which shows no progress here unless
        they say so.
    :param seed: For training and for the draws of predictions. Samples and trajectories are drawn
        from TensorFlow's global generator, as Trieste's are.
    :raises ValueError: If ``dataset`` lacks what :class:`ObservedData` has, its parts are not two
        finite matrices of one length, a number is not a positive integer, or ``build`` returns a
        model of warped observations.
    """

    def __init__(
        self,
        build: Callable[[RegressionData], DeepKernelProcess],
        dataset: ObservedData,
        *,
        num_steps: int = 1_000,
        num_samples: int = 100,
        fit_arguments: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        check_integers(num_steps=num_steps, num_samples=num_samples)
        check_instance(ObservedData, dataset=dataset)
        self._build = build
        self._num_steps = num_steps
        self._num_samples = num_samples
        self._fit_arguments = dict(fit_arguments or {})
        self._seed = seed
        self.history: TrainingHistory | None = None
        X, Y = check_arrays(dataset.query_points, dataset.observations)
        self._num_columns = X.shape[1], Y.shape[1]
        self._rebuild(X, Y)

    @property
    def model(self) -> DeepKernelProcess:
        """The present model, which works in standardised units."""
        return self._model

    def predict(self, query_points: TensorType) -> MeanAndVariance:
        """Return mean and variance of the function.

        :param query_points: Inputs, [..., D]; with other columns a :class:`ValueError` is raised,
            here and in all methods.
        :return: Mean and variance, [..., E] each.
        """
        return self._predict_moments("function_moments", query_points)

    def predict_y(self, query_points: TensorType) -> MeanAndVariance:
        """Return mean and variance of observations, noise included, as :meth:`predict` does."""
        return self._predict_moments("moments", query_points)

    def predict_joint(self, query_points: TensorType) -> MeanAndVariance:
        """Return mean and covariance of the function at B points.

        :param query_points: Batches of B inputs, [..., B, D].
        :return: The mean, [..., B, E], and the covariance, [..., E, B, B].
        """

        def predict(query_points: tf.Tensor) -> MeanAndVariance:
            mean, covariance = self._units.joint_moments(self._posterior, query_points)
            return mean[..., :width], covariance[..., :width, :, :]

        width = self._num_columns[1]
        points = self._checked(query_points)
        *leading, num_points, _ = points.shape
        mean_shape = [*leading, num_points, width]
        return _called_back(predict, points, mean_shape, [*leading, width, num_points, num_points])

    def covariance_between_points(
        self, query_points_1: TensorType, query_points_2: TensorType
    ) -> tf.Tensor:
        """Return the function's covariance between two sets of points.

        :param query_points_1: Inputs, [..., N, D].
        :param query_points_2: Inputs, [M, D].
        :return: [..., E, N, M].
        """
        first = to_default_float(query_points_1)
        second = to_default_float(query_points_2)
        shape = tf.concat([tf.shape(first)[:-2], tf.shape(second)], axis=0)
        _, covariance = self.predict_joint(
            tf.concat([first, tf.broadcast_to(second, shape)], axis=-2)
        )
        num_first = tf.shape(first)[-2]
        return covariance[..., :num_first, num_first:]

    def sample(self, query_points: TensorType, num_samples: int) -> tf.Tensor:
        """Draw functions, each of them coherent over the N points of a batch.

        :param query_points: Batches of N inputs, [..., N, D].
        :param num_samples: Number of joint draws, S.
        :return: [..., S, N, E].
        """

        def draw(query_points: tf.Tensor) -> tuple[tf.Tensor]:
            posterior = self._model.posterior(num_samples)
            return (self._units.sample_functions(posterior, query_points)[..., :width],)

        width = self._num_columns[1]
        points = self._checked(query_points)
        *leading, num_points, _ = points.shape
        shape = [*leading, num_samples, num_points, width]
        return _called_back(draw, points, shape)[0]

    def trajectory_sampler(self) -> TrajectorySampler:
        """Return what draws functions that can be evaluated anywhere."""
        return TrajectorySampler(self.draw_functions)

    def get_observation_noise(self) -> tf.Tensor:
        """Return the variance of the noise of a Gaussian likelihood, in squared raw units, [E].

        :raises NotImplementedError: If the likelihood has no variance that is one parameter.
        """
        likelihood = self._model.likelihood
        variance = getattr(likelihood, "variance", None)
        if variance is None or len(variance.shape) > 1:
            raise NotImplementedError(
                f"{type(likelihood).__name__} does not have one variance of noise."
            )

        def noise(unit: tf.Tensor) -> tuple[tf.Tensor]:
            present = tf.convert_to_tensor(self._model.likelihood.variance)
            return (unit * present * tf.square(self._outputs.scale),)

        one = tf.ones([], default_float())
        return _called_back(noise, one, [self._num_columns[1]])[0]

    def update(self, dataset: ObservedData) -> None:
        """Take in new data without training: only the number of data changes before the next
        :meth:`optimize`, since a deep model has no posterior in closed form.

        :param dataset: All observations so far.
        :raises ValueError: If the data do not fit the model.
        """
        X, _ = self._check(dataset)
        self._model.num_data = len(X)

    def optimize(self, dataset: ObservedData) -> TrainingHistory:
        """Build the model anew for the data and train it.

        It starts from scratch, with inducing points among all data; what was learned of earlier
        data would favour their optimum.

        :param dataset: All observations so far.
        :return: What :func:`fit` returned.
        :raises ValueError: If the data do not fit the model.
        """
        data = self._rebuild(*self._check(dataset))
        arguments = {"seed": self._seed, "progress": False, **self._fit_arguments}
        self.history = fit(self._model, data, self._num_steps, **arguments)
        self._draw()
        return self.history

    def log(self, dataset: ObservedData | None = None) -> None:
        """Report the bound that training reached, by Python's ``logging``, at level INFO.

        :param dataset: Its number of observations is reported, too.
        """
        count = self._model.num_data if dataset is None else len(dataset.query_points)
        bound = np.nan if self.history is None else self.history.elbo_per_datum[-1]
        _LOGGER.info("%d observations, bound per datum %.3f", count, bound)

    def draw_functions(self, num_samples: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Draw functions of the present model, in raw units.

        :param num_samples: Number of draws, B.
        :return: A function from [B, N, D] to [B, N, E].
        """
        functions, units = FunctionDraws(self._model, num_samples), self._units
        width = self._num_columns[1]
        return lambda X: units.to_raw(functions(units.to_model(X))[..., :width])

    def _rebuild(self, X: Array, Y: Array) -> tuple[Array, Array]:
        """Build an untrained model; return the data in its units."""
        inputs, self._outputs = Standardiser.fit(X), Standardiser.fit(Y)
        data = inputs.transform(X), self._outputs.transform(Y)
        model = self._build(data)
        if warp_of(model.likelihood) is not None:
            raise ValueError(
                "build must return a model of observations that are not warped, got a likelihood "
                f"{type(model.likelihood).__name__}: its functions have no Gaussian marginals."
            )
        self._model = model
        self._units = RawUnits(model, inputs, self._outputs)
        self._draw()
        return data

    def _draw(self) -> None:
        self._posterior: MixturePosterior = self._model.posterior(
            self._num_samples, seed=self._seed
        )

    def _check(self, dataset: ObservedData) -> tuple[Array, Array]:
        X, Y = check_arrays(dataset.query_points, dataset.observations)
        if (X.shape[1], Y.shape[1]) != self._num_columns:
            raise ValueError(
                "dataset must have query_points and observations with "
                f"{self._num_columns} columns, got {(X.shape[1], Y.shape[1])}."
            )
        return X, Y

    def _checked(self, query_points: TensorType) -> tf.Tensor:
        points = to_default_float(query_points)
        width = self._num_columns[0]
        if not points.shape[-1:].is_compatible_with([width]):
            raise ValueError(
                f"query_points must have {width} columns, got shape {tuple(points.shape)}."
            )
        return points

    def _predict_moments(self, method: str, query_points: TensorType) -> MeanAndVariance:
        def predict(points: tf.Tensor) -> MeanAndVariance:
            flat = tf.reshape(points, [-1, self._num_columns[0]])
            moments = getattr(self._units, method)(self._posterior, flat)
            leading = tf.shape(points)[:-1]
            mean, variance = (
                tf.reshape(part[:, :width], tf.concat([leading, [width]], axis=0))
                for part in moments
            )
            return mean, variance

        width = self._num_columns[1]
        points = self._checked(query_points)
        shape = [*points.shape[:-1], width]
        return _called_back(predict, points, shape, shape)


def _called_back(
    function: Callable[[tf.Tensor], tuple[tf.Tensor, ...]],
    points: tf.Tensor,
    *shapes: Sequence[int | None],
) -> tuple[tf.Tensor, ...]:
    """Call a function with the state that it has when compiled code runs, not when it is traced."""
    if tf.executing_eagerly():
        return function(points)
    results = tf.py_function(function, [points], [default_float()] * len(shapes))
    return tuple(
        tf.ensure_shape(result, shape) for result, shape in zip(results, shapes, strict=True)
    )
