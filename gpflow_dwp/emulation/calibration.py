"""Which inputs can have led to what was observed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array
from gpflow_dwp.emulation.emulator import as_emulator
from gpflow_dwp.validation import as_real_array

__all__ = ["implausibility"]


def implausibility(
    model: Any,
    x: npt.ArrayLike,
    observation: npt.ArrayLike,
    *,
    observation_std: npt.ArrayLike = 0.0,
    discrepancy_std: npt.ArrayLike = 0.0,
) -> Array:
    r"""Return how implausible inputs are, given what was observed of the real system.

    .. math:: I(x) = \frac{|z - \mu(x)|}
              {\sqrt{\sigma^2(x) + \sigma_\text{obs}^2 + \sigma_\text{dis}^2}}

    with the emulator's mean and variance, the nugget included, and the largest one over outputs.
    Inputs with I above 3 are commonly ruled out, by Pukelsheim's rule for distributions with one
    mode (Vernon, Goldstein and Bower, "Galaxy formation: a Bayesian uncertainty analysis", 2010);
    in waves, with new runs among those that are left.

    :param model: A fitted estimator or a trained model of Q outputs.
    :param x: Inputs, [N, D].
    :param observation: z, a number or [Q].
    :param observation_std: Standard deviation of the observation's error, a number or [Q].
    :param discrepancy_std: That of the simulator's discrepancy, a number or [Q].
    :return: [N].
    :raises ValueError: If the model is not fitted, or the observation has another length.
    """
    emulator = as_emulator(model)
    moments = [np.asarray(part) for part in emulator.moments(emulator.points("x", x))]
    mean = emulator.shaped(moments[0], are_outputs=True).reshape(len(moments[0]), -1)
    variance = emulator.shaped(moments[1]).reshape(mean.shape)
    z = np.atleast_1d(as_real_array("observation", observation))
    if z.shape != mean.shape[1:] or not np.isfinite(z).all():
        raise ValueError(
            f"observation must be {mean.shape[1]} finite numbers, got {observation!r}."
        )
    variance = variance + np.square(observation_std) + np.square(discrepancy_std)
    implausible = np.abs(z - mean) / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    return np.asarray(implausible.max(axis=1))
