"""What fitted estimators of numbers predict, in raw units."""

from __future__ import annotations

import abc
import os

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array, check_random_state

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.estimator._numbers import exact_numbers
from gpflow_dwp.estimator._saving import SavedWhole
from gpflow_dwp.evaluation import RawUnits
from gpflow_dwp.models.mixture_posterior import MixturePosterior
from gpflow_dwp.serving import export_model
from gpflow_dwp.validation import check_integers, check_shares


class PredictsNumbers(SavedWhole):
    """Predictions of observations, noise included: exactly those of a mixture of normals.

    What a class has that inherits from it: units, draws, and which outputs are constant.
    """

    output_standardiser_: Standardiser
    resolution_: Array
    _constants: Array
    _target_shape: tuple[int, ...]

    @abc.abstractmethod
    def _check_inputs(self, X: npt.ArrayLike) -> Array:
        """Inputs, [N, D] in raw units."""

    @abc.abstractmethod
    def _raw_units(self, *, of_outputs: bool = True) -> RawUnits:
        """What is between raw units and those of the draws; of inputs alone where asked for."""

    @abc.abstractmethod
    def _failure_at(self, X: Array) -> Array:
        """The probability that a run fails at inputs that have been checked, [N]."""

    @abc.abstractmethod
    def _posterior(self) -> MixturePosterior:
        """The draws of all predictions: the same at every call."""

    @abc.abstractmethod
    def _draws(self, num_samples: int, seed: int) -> MixturePosterior:
        """Others."""

    def predict(
        self, X: npt.ArrayLike, return_std: bool = False, include_noise: bool = True
    ) -> Array | tuple[Array, Array]:
        """Predict means, and standard deviations of observations where they are asked for.

        :param X: Inputs, [N, D].
        :param return_std: Whether standard deviations are wanted.
        :param include_noise: Whether they are of observations, noise or nugget included, or of the
            function alone.
        :return: Means, [N] or [N, Q] as the targets of ``fit``; with ``return_std`` also the
            standard deviations, of the same shape.
        """
        inputs = self._check_inputs(X)
        # In the model's units: in raw ones a variance may be beyond float64.
        units = self._raw_units(of_outputs=False)
        moments = units.moments if include_noise else units.function_moments
        outputs = self.output_standardiser_
        num_targets = len(outputs.mean)
        mean, variance = (part[:, :num_targets] for part in moments(self._posterior(), inputs))
        mean = self._shaped(outputs.inverse_transform(mean), self._constants)
        deviation = self._shaped(np.sqrt(variance) * outputs.scale)
        return (mean, deviation) if return_std else mean

    def predict_failure(self, X: npt.ArrayLike) -> Array:
        """Predict the probability that a run fails; 0 where none has, or ``failures`` is False.

        :param X: Inputs, [N, D].
        :return: [N].
        """
        return self._failure_at(self._check_inputs(X))

    def predict_quantiles(
        self, X: npt.ArrayLike, quantiles: npt.ArrayLike = (0.05, 0.5, 0.95)
    ) -> Array:
        """Predict quantiles of observations, exactly those of the mixture.

        :param X: Inputs, [N, D].
        :param quantiles: K probabilities, strictly between 0 and 1.
        :return: [N, K], or [N, Q, K] for targets of Q columns.
        :raises ValueError: If a probability is not between 0 and 1.
        """
        inputs = self._check_inputs(X)
        levels = np.atleast_1d(np.asarray(quantiles, np.float64))
        values = [
            distribution.quantile(levels)
            for _, distribution in self._raw_units().distributions(self._posterior(), inputs)
        ]
        return np.moveaxis(self._shaped(np.concatenate(values, axis=1), self._constants), 0, -1)

    def predict_interval(self, X: npt.ArrayLike, coverage: float = 0.95) -> tuple[Array, Array]:
        """Predict central intervals of observations.

        :param X: Inputs, [N, D].
        :param coverage: Probability of the intervals, strictly between 0 and 1.
        :return: Lower and upper ends, [N] or [N, Q] each.
        :raises ValueError: If ``coverage`` is not between 0 and 1.
        """
        check_shares(coverage=coverage)
        tail = 0.5 * (1.0 - coverage)
        ends = self.predict_quantiles(X, (tail, 1.0 - tail))
        return ends[..., 0], ends[..., 1]

    def predict_log_density(
        self, X: npt.ArrayLike, y: npt.ArrayLike, step: npt.ArrayLike | None = None
    ) -> Array:
        """Return the log density of each observation, per unit of the targets.

        Targets that are recorded to a step h, such as counts, have the probability of their cell by
        its width, P(y - h/2 < y' < y + h/2) / h: a density at a point that was observed again and
        again has no upper limit. Constant outputs do not count.

        :param X: Inputs, [N, D].
        :param y: Observations, [N] or [N, Q] as the targets of ``fit``.
        :param step: h, a number or [Q], 0 for densities; None for ``resolution_``.
        :return: Log densities, of all outputs jointly, [N].
        :raises ValueError: If the shapes do not fit, or a number is not finite.
        """
        inputs = self._check_inputs(X)
        y = exact_numbers("y", y)
        targets = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        columns = self._varying(targets, len(inputs))
        steps = np.broadcast_to(self.resolution_ if step is None else step, self._constants.shape)
        steps = steps[np.isnan(self._constants)]
        return self._raw_units().log_density(self._posterior(), inputs, columns, steps)

    def sample_y(
        self,
        X: npt.ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> Array:
        """Draw observations, jointly over the points: functions, plus noise.

        Every draw has a covariance of all points, so memory grows with N².

        :param X: Inputs, [N, D].
        :param n_samples: Number of draws, S.
        :param random_state: Seed or generator.
        :return: [N, S], or [N, Q, S] for targets of Q columns, as scikit-learn's Gaussian
            processes have it.
        :raises ValueError: If ``n_samples`` is not a positive integer.
        """
        check_integers(n_samples=n_samples)
        inputs = self._check_inputs(X)
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        posterior = self._draws(n_samples, seed)
        samples = self._raw_units().sample(posterior, inputs, full_cov=True)[:n_samples]
        return np.moveaxis(self._shaped(samples, self._constants), 0, -1)

    def export(self, directory: str | os.PathLike[str]) -> None:
        """Write what is predicted, from the draws of all predictions, for TensorFlow alone.

        Functions are those of :func:`gpflow_dwp.serving.export_model`, of inputs [N, D] in raw
        units (of categories, their indicators) and of outputs that are not constant, [N, P].

        :param directory: Where to: one that does not exist.
        """
        export_model(
            self._posterior(),
            directory,
            input_standardiser=getattr(self, "input_standardiser_", None),
            output_standardiser=self.output_standardiser_,
        )

    def _varying(self, y: Array, num_rows: int) -> Array:
        """The outputs of runs that are not constant, [N, P], once their shape is checked."""
        expected = [num_rows, *self._target_shape]
        if list(y.shape) != expected:
            raise ValueError(f"y must have shape {expected}, got {list(y.shape)}.")
        return varying_columns(y.reshape(num_rows, -1), self._constants)

    def _shaped(self, values: Array, constants: npt.ArrayLike = 0.0) -> Array:
        """Put in outputs that are constant, in the last axis, and drop it if targets had none."""
        varies = np.isnan(self._constants)
        full = np.empty((*values.shape[:-1], len(varies)))
        full[...] = constants
        full[..., varies] = values
        return full if self._target_shape else full[..., 0]


def varying_columns(columns: Array, constants: Array) -> Array:
    """The targets that are not constant, [N, P]."""
    others = ~(np.isnan(constants) | np.isnan(columns) | np.isclose(columns, constants, 1e-15, 0.0))
    for row, column in np.argwhere(others)[:1]:
        raise ValueError(
            f"y must be {constants[column]:g} in column {column + 1}, as in all rows of fit, got "
            f"{columns[row, column]:g} in row {row + 1}: fit anew."
        )
    return columns[:, np.isnan(constants)]
