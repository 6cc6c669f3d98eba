"""Which inputs can have led to what was observed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array
from gpflow_dwp.emulation.emulator import as_emulator
from gpflow_dwp.validation import as_real_array, check_integers

__all__ = ["implausibility"]


def implausibility(
    model: Any,
    x: npt.ArrayLike,
    observation: npt.ArrayLike,
    *,
    observation_std: npt.ArrayLike = 0.0,
    discrepancy_std: npt.ArrayLike = 0.0,
    rank: int = 1,
) -> Array:
    r"""Return how implausible inputs are, given what was observed of the real system.

    .. math:: I(x) = \frac{|z - \mu(x)|}
              {\sqrt{\sigma^2(x) + \sigma_\text{obs}^2 + \sigma_\text{dis}^2}}

    with the emulator's mean and variance, the nugget included. Inputs with I above 3 are commonly
    ruled out, by Pukelsheim's rule for distributions with one mode (Vernon, Goldstein and Bower,
    "Galaxy formation: a Bayesian uncertainty analysis", 2010); in waves, with new runs among those
    that are left.

    :param model: A fitted estimator or a trained model of Q outputs.
    :param x: Inputs, [N, D].
    :param observation: z, a number or [Q].
    :param observation_std: Standard deviation of the observation's error, a number or [Q].
    :param discrepancy_std: That of the simulator's discrepancy, a number or [Q].
    :param rank: 1 for the largest implausibility over outputs, 2 for the second largest, which is
        robust to an output that the simulator cannot match, and so on.
    :return: [N].
    :raises ValueError: If the model is not fitted, the observation has another length, or a
        deviation is negative.
    """
    check_integers(rank=rank)
    emulator = as_emulator(model)
    outputs = emulator.num_outputs
    z = _of_outputs(outputs, observation=observation)
    error = _of_outputs(outputs, 0.0, observation_std=observation_std)
    discrepancy = _of_outputs(outputs, 0.0, discrepancy_std=discrepancy_std)
    if rank > outputs:
        raise ValueError(f"rank must be at most the number of outputs, {outputs}, got {rank}.")
    mean, variance = (np.asarray(part) for part in emulator.moments(emulator.points("x", x)))
    return np.sort(np.abs(z - mean) / np.sqrt(variance + error**2 + discrepancy**2), axis=1)[
        :, -rank
    ]


def _of_outputs(outputs: int, least: float | None = None, **given: npt.ArrayLike) -> Array:
    """Finite numbers, one for each output; where they have a least value, one may be for all."""
    ((name, values),) = given.items()
    array = as_real_array(name, values)
    if array.ndim == 0 and (outputs == 1 or least is not None):
        array = np.full(outputs, float(array))
    if array.shape != (outputs,) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be {outputs} finite numbers, got {values!r}.")
    if least is not None and (array < least).any():
        raise ValueError(f"{name} must not be negative, got {values!r}.")
    return array
