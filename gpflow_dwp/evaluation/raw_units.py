"""A model between raw units and its own: the one way there and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.base import MeanAndVariance

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.likelihoods import NormalMixture
from gpflow_dwp.likelihoods.observed import accepted_observations
from gpflow_dwp.likelihoods.warped_gaussian import unwarped_moments, warp_of
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.data_checks import count_columns
from gpflow_dwp.models.mixture_posterior import MixturePosterior
from gpflow_dwp.models.predictive import mixture_moments
from gpflow_dwp.validation import check_instance

__all__ = ["RawUnits"]

# A mixture's components, [S, rows], are held for this many rows at a time.
_BLOCK = 10_000


class RawUnits:
    """What a model predicts in raw units, of inputs X [N, D] and observations Y [N, P] in theirs.

    Methods take a posterior of the model. They return NumPy arrays for NumPy arrays, and tensors
    for tensors, by TensorFlow operations alone; in a graph these refuse what the model refuses
    outside one.

    :param model: The model, or a posterior.
    :param input_standardiser: What its inputs went through; None for nothing.
    :param output_standardiser: What its observations went through; None for nothing, as for labels.
    :raises ValueError: If a standardiser does not have the model's columns.
    """

    def __init__(
        self,
        model: VariationalModel | MixturePosterior,
        input_standardiser: Standardiser | None = None,
        output_standardiser: Standardiser | None = None,
    ) -> None:
        num_columns = count_columns(model.likelihood, model.num_outputs)
        for name, standardiser, expected in (
            ("input_standardiser", input_standardiser, model.num_inputs),
            ("output_standardiser", output_standardiser, num_columns),
        ):
            if standardiser is not None:
                check_instance(Standardiser, **{name: standardiser})
            if standardiser is not None and len(standardiser.mean) != expected:
                raise ValueError(
                    f"{name} must have {expected} columns, as the model has, got "
                    f"{len(standardiser.mean)}."
                )
        self.model: Any = model
        self._inputs, self._outputs = input_standardiser, output_standardiser
        self._accepted = accepted_observations(model.likelihood)
        self._warp = warp_of(model.likelihood)

    def to_model(self, X: Any) -> Any:
        """Return inputs, [..., D], in the model's units."""
        if not tf.executing_eagerly():
            tf.debugging.assert_all_finite(X, "X must be finite")
        return _standardised(self._inputs, X)

    def to_raw(self, values: Any) -> Any:
        """Return functions or observations of the model, [..., P], in raw units."""
        mean, scale, _ = _constants(self._outputs, values)
        return values * scale + mean

    def moments(self, posterior: MixturePosterior, X: Any) -> MeanAndVariance:
        """Return mean and variance of observations, [N, P] each."""
        return self._to_raw_moments(X, *posterior.predict_y(self.to_model(X)))

    def function_moments(self, posterior: MixturePosterior, X: Any) -> MeanAndVariance:
        """Return mean and variance of the latent functions, unwarped, [N, Q] each.

        Where there are more than columns of observations, the first are taken to be in their units,
        and the others, such as the log scale of noise, stay as they are.
        """
        inputs = self.to_model(X)
        if self._warp is None:
            moments = posterior.predict_f(inputs)
        else:
            components = posterior.predict_f_components(inputs)
            moments = mixture_moments(*unwarped_moments(self._warp, *components))
        return self._to_raw_moments(X, *moments)

    def joint_moments(self, posterior: MixturePosterior, X: Any) -> MeanAndVariance:
        """Return mean [N, Q] and covariance [Q, N, N] of functions, unwarped.

        Under a warp correlations are those of what is warped.
        """
        mean, covariance = posterior.predict_f(self.to_model(X), full_cov=True)
        if self._warp is not None:
            deviation = tf.sqrt(tf.linalg.diag_part(covariance))
            components = posterior.predict_f_components(self.to_model(X))
            mean, variance = mixture_moments(*unwarped_moments(self._warp, *components))
            ratio = tf.sqrt(tf.transpose(variance)) / deviation
            covariance *= ratio[:, :, None] * ratio[:, None, :]
        mean, covariance = _as_given(X, mean), _as_given(X, covariance)
        scale = _constants(self._outputs, mean)[1]
        return self.to_raw(mean), covariance * (scale * scale)[:, None, None]

    def sample(self, posterior: MixturePosterior, X: Any, *, full_cov: bool = False) -> Any:
        """Draw observations, [S, N, P]: see :meth:`MixturePosterior.sample_y`."""
        return self.to_raw(_as_given(X, posterior.sample_y(self.to_model(X), full_cov)))

    def sample_functions(
        self, posterior: MixturePosterior, X: Any, *, full_cov: bool = True
    ) -> Any:
        """Draw the latent functions, [S, N, Q], as :meth:`function_moments` has them.

        See :meth:`MixturePosterior.sample_f`.
        """
        values = posterior.sample_f(self.to_model(X), full_cov)
        if self._warp is not None:
            values = self._warp.inverse(values)
        return self.to_raw(_as_given(X, values))

    def log_density(
        self, posterior: MixturePosterior, X: Any, Y: Any, step: npt.ArrayLike = 0.0
    ) -> Any:
        """Return the log density of each observation, per unit of Y and of all columns, [N].

        :param step: What observations were recorded to, in the unit of Y, a number or [P]: see
            :meth:`PredictiveDistribution.log_density`. 0 for full precision.
        """
        if np.any(step):
            return self._log_cell_density(posterior, X, Y, step)
        inputs, offset = self.to_model(X), _constants(self._outputs, Y)[2]
        Y = _standardised(self._outputs, Y)
        if not tf.executing_eagerly():
            tf.debugging.assert_all_finite(Y, "Y must be finite")
            accepted = tf.reduce_all(self._accepted.accepts(Y))
            tf.debugging.Assert(accepted, [f"Y must hold {self._accepted.expected}"])
        densities = posterior.predict_log_density((inputs, Y))
        return _as_given(X, densities) + offset

    def _log_cell_density(
        self, posterior: MixturePosterior, X: Array, Y: Array, step: npt.ArrayLike
    ) -> Array:
        likelihood = posterior.likelihood
        num_nodes = 1
        if isinstance(likelihood, NormalMixture) and not likelihood.columns_share_nodes:
            num_nodes = len(likelihood.log_component_weights())
        return np.concatenate(
            [
                part.joint_log_density(Y[rows], num_nodes, step)
                for rows, part in self.distributions(posterior, X)
            ]
        )

    def probabilities(self, posterior: MixturePosterior, X: Array) -> Array:
        """Return the probability of each label, [N, C], also where the model has that of one."""
        mean = posterior.predict_y(self.to_model(X))[0].numpy().astype(np.float64)
        return mean if mean.shape[1] > 1 else np.hstack([1.0 - mean, mean])

    def distribution(self, posterior: MixturePosterior, X: Array) -> PredictiveDistribution:
        """Return the distributions of numbers: see :meth:`PredictiveDistribution.of`."""
        return PredictiveDistribution.of(posterior, self.to_model(X), self._outputs)

    def distributions(
        self, posterior: MixturePosterior, X: Array
    ) -> Iterator[tuple[slice, PredictiveDistribution]]:
        """Give the distributions of many points, some at a time, with the rows that they are of."""
        for start in range(0, len(X), _BLOCK):
            rows = slice(start, start + _BLOCK)
            yield rows, self.distribution(posterior, X[rows])

    def _to_raw_moments(self, X: Any, *moments: tf.Tensor) -> MeanAndVariance:
        mean, variance = (_as_given(X, moment) for moment in moments)
        scale = _constants(self._outputs, variance)[1]
        return self.to_raw(mean), variance * (scale * scale)


def _standardised(standardiser: Standardiser | None, values: Any) -> Any:
    """Values in the model's units, in double precision until then, as those of NumPy are.

    A mean in single precision may be far off where the values differ little from it.
    """
    wide = tf.cast(values, tf.float64) if _is_tensor(values) else values
    mean, scale, _ = _constants(standardiser, wide)
    moved = (wide - mean) / scale
    return tf.cast(moved, values.dtype) if _is_tensor(values) else moved


def _constants(standardiser: Standardiser | None, values: Any) -> tuple[Any, Any, Any]:
    """Mean, scale and offset of log densities, to go with values of this type."""
    constants: tuple[Any, Any, Any] = (0.0, 1.0, 0.0)
    if standardiser is not None:
        mean, scale = standardiser.mean, standardiser.scale
        if more := values.shape[-1] - len(mean):
            mean, scale = np.append(mean, np.zeros(more)), np.append(scale, np.ones(more))
        constants = mean, scale, standardiser.log_density_offset
    if not _is_tensor(values):
        return constants
    with tf.init_scope():  # of its own constants a graph rearranges the arithmetic, and so rounding
        mean, scale, offset = (tf.constant(constant, values.dtype) for constant in constants)
    return mean, scale, offset


def _as_given(X: Any, values: tf.Tensor) -> Any:
    return values if _is_tensor(X) else values.numpy()


def _is_tensor(values: Any) -> bool:
    return not isinstance(values, np.ndarray) and bool(tf.is_tensor(values))  # which takes long
