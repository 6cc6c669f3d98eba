"""Posteriors over the iterates of one training run."""

from __future__ import annotations

import abc
from collections.abc import Generator, Mapping
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
from gpflow.models import BayesianModel

from gpflow_dwp.base import Array
from gpflow_dwp.iterates.factor_model import FactorModel
from gpflow_dwp.iterates.mixture_predictions import MixturePredictions
from gpflow_dwp.iterates.parameter_vector import assign_parameter_vector, parameter_vector
from gpflow_dwp.training import TrainingProgress
from gpflow_dwp.validation import check_instance, check_integers

__all__ = ["IteratePosterior"]


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

    _paper: ClassVar[str]
    _arrays: ClassVar[tuple[str, ...]]  # attributes that hold what was collected

    def __init__(self, model: BayesianModel, start_step: int = 0) -> None:
        check_instance(tf.Module, model=model)
        check_integers(at_least=0, start_step=start_step)
        self.model = model
        self.start_step = start_step
        self._dimension = len(parameter_vector(model))
        self._num_collected = 0

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
        self._num_collected += 1
        self._observe(vector)

    @property
    def num_collected(self) -> int:
        """How many iterates were collected."""
        return self._num_collected

    @property
    def papers(self) -> tuple[str, ...]:
        parts = (self.model, *self.model.submodules)
        return self._paper, *(paper for part in parts for paper in getattr(part, "papers", ()))

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
        """Take one more iterate in; ``_num_collected`` counts it already."""

    def _header(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, "dimension": self._dimension}

    def _state(self) -> dict[str, Array]:
        arrays = {name: getattr(self, name) for name in self._arrays}
        return {"num_collected": np.array(self._num_collected), **arrays}

    def _restore(self, state: Mapping[str, Array]) -> None:
        self._num_collected = int(state["num_collected"])
        for name in self._arrays:
            setattr(self, name, state[name])

    def _check_collected(self, at_least: int) -> None:
        if self._num_collected < at_least:
            raise ValueError(
                f"{type(self).__name__} needs at least {at_least} collected iterates, "
                f"got {self._num_collected}."
            )
