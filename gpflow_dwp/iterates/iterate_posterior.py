"""Posteriors over the iterates of one training run."""

from __future__ import annotations

import abc
from collections.abc import Generator

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.models import BayesianModel

from gpflow_dwp.base import Array
from gpflow_dwp.iterates.factor_model import FactorModel
from gpflow_dwp.iterates.mixture_predictions import MixturePredictions
from gpflow_dwp.training import TrainingProgress
from gpflow_dwp.validation import check_instance, check_integers

__all__ = ["IteratePosterior", "assign_parameter_vector", "parameter_vector"]


class IteratePosterior(MixturePredictions):
    """A Gaussian over the parameters that a training run passes through.

    A callback of :func:`gpflow_dwp.fit`; with a training loop of your own, call :meth:`collect`
    where an iterate is to count.

    :param model: A GPflow model; its trainable parameters are collected in their unconstrained
        space, in which also the draws are.
    :param start_step: Iterates of a run up to this step are not collected.
    :raises ValueError: If ``model`` is no TensorFlow module or has no trainable parameters, or
        ``start_step`` is not an integer of at least 0.
    """

    def __init__(self, model: BayesianModel, start_step: int = 0) -> None:
        check_instance(tf.Module, model=model)
        check_integers(at_least=0, start_step=start_step)
        super().__init__(name=type(self).__name__)
        self.model = model
        self.start_step = start_step
        self._dimension = len(parameter_vector(model))
        self._count = tf.Variable(0, trainable=False, dtype=tf.int64)

    def __call__(self, progress: TrainingProgress) -> None:
        """Collect the present parameters: the callback of a training run."""
        if progress.step > self.start_step:
            self.collect()

    def collect(self) -> None:
        """Collect the model's present parameters.

        :raises ValueError: If they are not finite; nothing is collected then.
        """
        vector = parameter_vector(self.model)
        if vector.shape != (self._dimension,):
            raise ValueError(
                f"model must have {self._dimension} trainable parameters, as at the start, "
                f"got {len(vector)}."
            )
        if not np.all(np.isfinite(vector)):
            raise ValueError("model must have finite parameters.")
        self._count.assign_add(1)
        self._observe(vector)

    @property
    def num_collected(self) -> int:
        """How many iterates were collected."""
        return int(self._count)

    @abc.abstractmethod
    def distribution(self) -> FactorModel:
        """Return the Gaussian over the parameter vector.

        :raises ValueError: If too few iterates were collected.
        """

    def sample(self, *, seed: int | tf.Tensor | None = None) -> None:
        """Put a draw into the model.

        :param seed: An integer or stateless seed; None for a fresh draw.
        :raises ValueError: If too few iterates were collected; the model is as it was then.
        """
        assign_parameter_vector(self.model, self.distribution().sample(1, seed=seed)[0])

    def use_mean(self) -> None:
        """Put the mean of the iterates into the model; errors as for :meth:`sample`."""
        assign_parameter_vector(self.model, self.distribution().mean)

    def at_draws(
        self, num_draws: int, *, seed: int | tf.Tensor | None = 0
    ) -> Generator[BayesianModel, None, None]:
        """Give the model one draw after another; see :meth:`MixturePredictions.at_draws`."""
        check_integers(num_draws=num_draws)
        draws = self.distribution().sample(num_draws, seed=seed)
        own = parameter_vector(self.model)
        try:
            for draw in draws:
                assign_parameter_vector(self.model, draw)
                yield self.model
        finally:
            assign_parameter_vector(self.model, own)

    @abc.abstractmethod
    def _observe(self, vector: Array) -> None:
        """Take one more iterate in; ``num_collected`` counts it already."""

    def _zeros(self, *leading: int) -> tf.Variable:
        """A place for vectors, [..., D], in float64 also where the model is in float32."""
        return tf.Variable(np.zeros((*leading, self._dimension)), trainable=False)

    def _check_collected(self, at_least: int) -> None:
        if self.num_collected < at_least:
            raise ValueError(
                f"{type(self).__name__} needs at least {at_least} collected iterates, "
                f"got {self.num_collected}."
            )


def parameter_vector(module: tf.Module) -> Array:
    """Return all trainable parameters, in their unconstrained space, in one float64 vector, [D].

    :param module: A GPflow model, or any module.
    :raises ValueError: If nothing is trainable.
    """
    if not module.trainable_variables:
        raise ValueError(f"{type(module).__name__} has no trainable parameters.")
    parts = [variable.numpy().ravel() for variable in module.trainable_variables]
    return np.concatenate(parts, dtype=np.float64)


def assign_parameter_vector(module: tf.Module, vector: npt.ArrayLike) -> None:
    """Give a module the parameters that :func:`parameter_vector` returned.

    :param module: A GPflow model, or any module.
    :param vector: The vector of all parameters, [D].
    :raises ValueError: If the length is not that of the module's parameters; none has changed then.
    """
    variables = module.trainable_variables
    sizes = [variable.shape.num_elements() for variable in variables]
    vector = np.asarray(vector)
    if vector.shape != (sum(sizes),):
        raise ValueError(f"vector must have shape ({sum(sizes)},), got {vector.shape}.")
    parts = np.split(vector, np.cumsum(sizes)[:-1])
    for variable, part in zip(variables, parts, strict=True):
        variable.assign(part.reshape(variable.shape).astype(variable.dtype.as_numpy_dtype))
