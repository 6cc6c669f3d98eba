"""A fitted estimator or model, as all functions of this room see it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from gpflow_dwp.base import Array
from gpflow_dwp.data.columns import Columns
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.models import DeepKernelProcess
from gpflow_dwp.models.mixture_posterior import MixturePosterior
from gpflow_dwp.validation import check_integers, check_matrix

__all__ = ["Emulator", "as_emulator", "sobol_points"]

_HINTS = {
    "Pipeline": "give pipeline[-1], whose inputs are those of pipeline[:-1].transform(X)",
    "TransformedTargetRegressor": "give its regressor_, whose outputs are transformed",
}


@dataclasses.dataclass(frozen=True)
class Emulator:
    """What predicts, in raw units.

    :param model: The model, in its own units; None of a chain, which has several.
    :param units: What is between these and raw ones.
    :param posterior: Its draws, the same at every call.
    :param seed: What they are made of.
    :param estimator: The estimator that it belongs to, if it does.
    """

    model: DeepKernelProcess | None
    units: RawUnits
    posterior: MixturePosterior
    seed: int = 0
    estimator: Any = None

    @property
    def num_outputs(self) -> int:
        """P, those of the model: constant ones are no part of it."""
        standardiser = getattr(self.estimator, "output_standardiser_", None)
        return len(standardiser.mean) if standardiser else self.posterior.num_outputs or 1

    @property
    def columns(self) -> Columns:
        """Those of the frame that an estimator was fitted to, else of numbers."""
        names = getattr(self.estimator, "feature_names_in_", range(self.posterior.num_inputs))
        return getattr(self.estimator, "columns_", None) or Columns.of_numbers(names)

    @property
    def runs(self) -> Array:
        """Inputs of the runs, in raw units, [N, E]."""
        rows: Any = getattr(self.estimator, "_rows", None) or (self.model and self.model.rows)
        if not rows:
            way = "; of a chain call suggest(chain.links[i], ...), whose runs are its own"
            raise ValueError(f"replicates must be False where a model does not have its runs{way}.")
        return np.asarray(rows[0])

    def points(self, name: str, values: npt.ArrayLike) -> Array:
        """Check inputs, numbers in raw units, of which each level of a category has one, [N, E]."""
        if self.estimator is not None:
            return np.asarray(self.estimator._check_inputs(values))
        return check_matrix(name, values)

    def moments(self, X: Any) -> tuple[Any, Any]:
        """Mean and variance of observations, nugget included, [N, P] each."""
        mean, variance = self.units.moments(self.posterior, X)
        return mean[:, : self.num_outputs], variance[:, : self.num_outputs]

    def success(self, X: Array) -> Array:
        """The probability that a run succeeds, [N]; 1 where failures are not modelled."""
        if self.estimator is None:
            return np.ones(len(X))
        return np.asarray(1.0 - self.estimator._failure_at(X))

    def shaped(self, values: Array, *, are_outputs: bool = False) -> Array:
        """As the runs of an estimator: with constant outputs, and no last axis if they had none.

        :param are_outputs: Whether these are values of outputs, and not deviations or effects,
            which are 0 where an output is constant.
        """
        if self.estimator is None:
            return values
        constants = self.estimator._constants if are_outputs else 0.0
        return np.asarray(self.estimator._shaped(values, constants))


def as_emulator(model: Any) -> Emulator:
    """Take an estimator or a model.

    :raises ValueError: If it is neither, or an estimator that is not fitted.
    """
    if isinstance(model, DeepKernelProcess):
        return Emulator(model, RawUnits(model), model.posterior(100, seed=0))
    if not hasattr(model, "predict_failure"):
        name = type(model).__name__
        way = f": {_HINTS[name]}." if name in _HINTS else "."
        raise ValueError(f"model must be a DeepWishartRegressor, chain or model, got {name}{way}")
    if not (hasattr(model, "model_") or hasattr(model, "links")):
        raise ValueError("model must be fitted: call its fit(X, y).")
    of_one = getattr(model, "model_", None)
    return Emulator(of_one, model._raw_units(), model._posterior(), model._seed, model)


def sobol_points(bounds: Array, num_points: int, seed: int) -> Array:
    """Scrambled Sobol points within bounds, [num_points, D]."""
    check_integers(num_points=num_points)
    # SciPy before 1.15 has no `rng`.
    points = qmc.Sobol(len(bounds), seed=np.random.default_rng(seed))
    unit = points.random_base2(math.ceil(math.log2(num_points)))[:num_points]
    return np.asarray(qmc.scale(unit, *bounds.T))
