"""What posteriors over the iterates of a training run share."""

from __future__ import annotations

import abc
import os
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.models import BayesianModel

from gpflow_dwp.base import Array
from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.iterates._saved_iterates import (
    SavedIterates,
    read_saved_iterates,
    saved_iterates_path,
    write_saved_iterates,
)
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
        """Put the mean of the iterates into the model.

        :raises ValueError: If too few iterates were collected; the model is as it was then.
        """
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

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write what was collected into a directory, such as that of the saved model.

        The file is replaced in one step.

        :param directory: Where to; made if it is missing.
        :raises ValueError: If it is no path.
        """
        write_saved_iterates(saved_iterates_path(directory), self._saved())

    def load(self, directory: str | os.PathLike[str]) -> None:
        """Read what :meth:`save` wrote, in place of what was collected.

        :param directory: The directory that was written.
        :raises ValueError: If that is no path.
        :raises SavedModelError: If there is nothing, it is damaged, or it was collected by another
            kind of posterior, with other settings, or from another model; nothing has changed then.
        """
        path = saved_iterates_path(directory)
        saved = read_saved_iterates(path)
        self._check(saved, path)
        self._take(saved)

    def _saved(self) -> SavedIterates:
        """What :meth:`save` writes."""
        return SavedIterates(self._header() | {"num_collected": self._num_collected}, self._state())

    def _check(self, saved: SavedIterates, path: Path) -> None:
        """Refuse what :meth:`_take` cannot take, so that several can be checked before."""
        header, state = saved
        for name, value in self._header().items():
            if header.get(name) != value:
                raise SavedModelError(
                    f"{path} was collected with {name}={header.get(name)!r}, but this posterior "
                    f"has {value!r}."
                )
        if missing := self._state().keys() - state.keys():
            raise SavedModelError(f"{path} is damaged: it lacks {', '.join(sorted(missing))}.")

    def _take(self, saved: SavedIterates) -> None:
        self._restore(saved.state)
        self._num_collected = saved.header["num_collected"]

    def _header(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, "dimension": self._dimension}

    @abc.abstractmethod
    def _observe(self, vector: Array) -> None:
        """Take one more iterate in; ``_num_collected`` counts it already."""

    @abc.abstractmethod
    def _state(self) -> dict[str, Array]:
        """What :meth:`_restore` needs."""

    @abc.abstractmethod
    def _restore(self, state: Mapping[str, Array]) -> None:
        """Take the place of what was collected."""

    def _check_collected(self, at_least: int) -> None:
        if self._num_collected < at_least:
            raise ValueError(
                f"{type(self).__name__} needs at least {at_least} collected iterates, "
                f"got {self._num_collected}."
            )
