"""What was observed of the real system, and how likely or implausible inputs are given it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.kernels import Kernel

from gpflow_dwp.base import Array
from gpflow_dwp.emulation.emulator import Emulator
from gpflow_dwp.neighbours import Index
from gpflow_dwp.validation import as_real_array, check_matrix

__all__ = ["Target"]


class Target(NamedTuple):
    """Observations, of outputs or of one output at several settings, without those that are NaN.

    :param emulator: What predicts.
    :param z: The observations, [P].
    :param observed: Indices of their outputs or settings.
    :param fixed: What is added to the emulator's variance, [P].
    :param covariance: Of errors, beside these, [P, P].
    :param settings: Inputs of each, [P, D], NaN where these are to be found.
    """

    emulator: Emulator
    z: Array
    observed: Index
    fixed: Array
    covariance: Array | None
    settings: Array | None = None

    @classmethod
    def of(
        cls,
        emulator: Emulator,
        observation: npt.ArrayLike,
        observation_std: npt.ArrayLike,
        discrepancy_std: npt.ArrayLike,
        covariance: npt.ArrayLike | None,
        *,
        settings: npt.ArrayLike | None = None,
        discrepancy: Kernel | None = None,
    ) -> Target:
        """Check what is given, as for :func:`gpflow_dwp.emulation.input_posterior`."""
        z = np.atleast_1d(as_real_array("observation", observation, may_miss=True))
        size = emulator.shaped(np.zeros((1, emulator.num_outputs))).size
        rows = None
        if settings is not None:
            if size > 1:
                raise ValueError(f"model must have one output with settings, got {size}.")
            rows = _checked_settings(settings, len(emulator.columns.names))
            size = len(rows)
        if z.shape != (size,) or np.isnan(z).all() or np.isinf(z).any():
            raise ValueError(
                f"observation must be {size} finite numbers, or NaN, got {observation!r}."
            )
        observed = np.flatnonzero(~np.isnan(z))
        fixed = np.square(_checked_std("observation_std", observation_std, observed, size))
        fixed += np.square(_checked_std("discrepancy_std", discrepancy_std, observed, size))
        joint = None if covariance is None else _checked_covariance(covariance, observed, size)
        rows = None if rows is None else rows[observed]
        if discrepancy is not None:
            if rows is None:
                raise ValueError("settings must be given with a discrepancy: it is of these.")
            between = discrepancy(rows[:, ~np.isnan(rows[0])]).numpy()
            joint = between if joint is None else joint + between
        return cls(emulator, z[observed], observed, fixed, joint, rows)

    @property
    def num_unknown(self) -> int:
        """Inputs that are to be found."""
        rows = self.settings
        return len(self.emulator.columns.names) if rows is None else int(np.isnan(rows[0]).sum())

    def errors_at(self, x: Array) -> tuple[Array, Array]:
        """Observation less mean, and variance without the covariance, [N, P] each."""
        mean, variance = (np.asarray(part) for part in self.emulator.moments(x))
        parts = self.emulator.shaped(mean, are_outputs=True), self.emulator.shaped(variance)
        mean, variance = (part.reshape(len(x), -1) for part in parts)
        return self.z - mean[:, self.observed], variance[:, self.observed] + self.fixed

    def log_density(self, x: tf.Tensor) -> tf.Tensor:
        """Of the observation at inputs [N, D], up to a constant, differentiable, [N]."""
        if self.settings is not None:
            return tf.stack([self._normal(*self._joint_at(each)) for each in tf.unstack(x)])
        constants = getattr(self.emulator.estimator, "_constants", np.full(len(self.z), np.nan))
        varies = np.isnan(constants)
        seen, columns = varies[self.observed], (np.cumsum(varies) - 1)[self.observed]
        moments = self.emulator.moments(x)
        mean, variance = (tf.gather(part, columns[seen], axis=1) for part in moments)
        return self._normal(mean, tf.linalg.diag(variance), seen)

    def _joint_at(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Mean, [P], and covariance, [P, P], at all settings with inputs x, [num_unknown]."""
        rows: Any = self.settings
        places = np.flatnonzero(np.isnan(rows[0]))
        X = tf.constant(np.nan_to_num(rows)) + tf.scatter_nd(places[:, None], x, [rows.shape[1]])
        mean, covariances = self.emulator.units.joint_moments(self.emulator.posterior, X)
        variance, covariance = self.emulator.moments(X)[1][:, 0], covariances[0]  # with the nugget
        least = tf.linalg.diag_part(covariance)
        return mean[:, 0], tf.linalg.set_diag(covariance, tf.maximum(variance, least))

    def _normal(self, mean: Any, covariance: tf.Tensor, seen: Any = slice(None)) -> tf.Tensor:
        covariance += np.diag(self.fixed[seen])
        if self.covariance is not None:
            covariance += self.covariance[seen][:, seen]
        tril = tf.linalg.cholesky(covariance)
        return tfp.distributions.MultivariateNormalTriL(mean, tril).log_prob(self.z[seen])


def _checked_std(name: str, values: npt.ArrayLike, observed: Index, size: int) -> Array:
    std = as_real_array(name, values, may_miss=True)
    of_each = np.broadcast_to(std, size)[observed] if std.shape in ((), (size,)) else np.array(-1.0)
    if not ((of_each >= 0.0) & np.isfinite(of_each)).all():
        raise ValueError(f"{name} must be a number from 0, or {size} such, got {values!r:.80}.")
    return of_each


def _checked_settings(settings: npt.ArrayLike, num_inputs: int) -> Array:
    rows = check_matrix("settings", settings, may_miss=True)
    unknown = np.isnan(rows)
    if rows.shape[1] != num_inputs or (unknown != unknown[0]).any() or not unknown.any():
        raise ValueError(
            f"settings must have {num_inputs} columns, some NaN in all rows: to be found, "
            f"got {settings!r:.80}."
        )
    return rows


def _checked_covariance(covariance: npt.ArrayLike, observed: Index, size: int) -> Array:
    joint = as_real_array("covariance", covariance)
    if joint.shape != (size, size):
        raise ValueError(f"covariance must be {[size, size]}, got {list(joint.shape)}.")
    joint = joint[np.ix_(observed, observed)]
    if not np.allclose(joint, joint.T) or np.linalg.eigvalsh(joint)[0] < -1e-9 * np.max(joint):
        raise ValueError("covariance must be symmetric and positive semi-definite.")
    return joint
