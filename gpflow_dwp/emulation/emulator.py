"""A fitted estimator or model, as all functions of this room see it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array
from gpflow_dwp.data.array_checks import check_matrix
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.models import DeepKernelProcess
from gpflow_dwp.models.mixture_posterior import MixturePosterior

__all__ = ["Emulator", "as_emulator", "check_bounds"]


@dataclasses.dataclass(frozen=True)
class Emulator:
    """What predicts, in raw units.

    :param model: The model, in its own units.
    :param units: What is between these and raw ones.
    :param posterior: Its draws, the same at every call.
    :param seed: What they are made of.
    :param estimator: The estimator that it belongs to, if it does.
    """

    model: DeepKernelProcess
    units: RawUnits
    posterior: MixturePosterior
    seed: int = 0
    estimator: Any = None

    @property
    def num_outputs(self) -> int:
        """Q."""
        standardiser = getattr(self.estimator, "output_standardiser_", None)
        return int(self.model.num_outputs or 1) if standardiser is None else len(standardiser.mean)

    def points(self, name: str, values: npt.ArrayLike) -> Array:
        """Check inputs, [N, D] in raw units."""
        if self.estimator is not None:
            return np.asarray(self.estimator._check_inputs(values))
        X = check_matrix(name, values)
        if X.shape[1] != self.model.num_inputs:
            raise ValueError(f"{name} must have {self.model.num_inputs} columns, got {X.shape[1]}.")
        return X

    def moments(self, X: Any, *, include_noise: bool = True) -> tuple[Any, Any]:
        """Mean and variance of observations, or of the function, [N, Q] each."""
        of = self.units.moments if include_noise else self.units.function_moments
        mean, variance = of(self.posterior, X)
        return mean[:, : self.num_outputs], variance[:, : self.num_outputs]

    def success(self, X: Array) -> Array:
        """The probability that a run succeeds, [N]; 1 where failures are not modelled."""
        if self.estimator is None:
            return np.ones(len(X))
        return np.asarray(1.0 - self.estimator.predict_failure(X))

    def shaped(self, values: Array) -> Array:
        """Without the axis of outputs, the last one, where the runs of an estimator had none."""
        return values if self.estimator is None else np.asarray(self.estimator._shaped(values))


def as_emulator(model: Any) -> Emulator:
    """Take an estimator or a model.

    :raises ValueError: If it is neither, an estimator that is not fitted, or one of labels.
    """
    if isinstance(model, DeepKernelProcess):
        return Emulator(model, RawUnits(model), model.posterior(100, seed=0))
    name = type(model).__name__
    if not hasattr(model, "_raw_units"):
        raise ValueError(f"model must be a DeepWishartRegressor or a model of ours, got {name}.")
    if not hasattr(model, "model_"):
        raise ValueError(f"model must be fitted: call fit(X, y) of the {name}.")
    if not hasattr(model, "predict_failure"):
        raise ValueError(f"model must predict numbers, got a {name}.")
    return Emulator(model.model_, model._raw_units(), model._posterior(), model._seed, model)


def check_bounds(bounds: npt.ArrayLike, num_inputs: int) -> Array:
    """Check lower and upper bounds of the inputs, [D, 2].

    :raises ValueError: If they are not such, or a lower one is not below the upper one.
    """
    limits = check_matrix("bounds", bounds)
    if limits.shape != (num_inputs, 2):
        raise ValueError(f"bounds must have shape {[num_inputs, 2]}, got {list(limits.shape)}.")
    for index, (low, high) in enumerate(limits):
        if not low < high:
            raise ValueError(
                f"bounds must be pairs (lower, upper), got ({low:g}, {high:g}) for input {index}."
            )
    return limits
