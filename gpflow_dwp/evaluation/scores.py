"""How well a model does: the figures that every model is compared by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation.metrics import expected_calibration_error, explained_variance, rmse

__all__ = ["Scores"]


class Scores(NamedTuple):
    """How well a model does, in the units of the targets that it was given.

    :param elbo: Bound on, or logarithm of, the marginal likelihood, per training row, in nats;
        None for a model that has neither.
    :param log_likelihood: Mean log density (regression) or log probability of the test targets.
    :param error: Root mean squared error, or for labels the share that is wrong.
    :param seconds: Wall-clock time of training.
    :param crps: Mean continuous ranked probability score of regression.
    :param r2: Share of the test targets' variance that regression explains.
    :param ece: Expected calibration error of labels' probabilities.
    """

    elbo: float | None
    log_likelihood: float
    error: float
    seconds: float
    crps: float | None = None
    r2: float | None = None
    ece: float | None = None

    @classmethod
    def of_numbers(
        cls,
        y: Array,
        mean: Array,
        *,
        crps: float,
        log_likelihood: float,
        seconds: float,
        elbo: float | None = None,
    ) -> Scores:
        """Score predictions of numbers.

        :param y: Targets, [N].
        :param mean: Predicted means, [N].
        """
        r2 = explained_variance(y, mean)
        return cls(elbo, log_likelihood, rmse(y, mean), seconds, crps=crps, r2=r2)

    @classmethod
    def of_labels(
        cls,
        labels: Array,
        probabilities: Array,
        *,
        log_likelihood: float,
        seconds: float,
        elbo: float | None = None,
    ) -> Scores:
        """Score predictions of labels.

        :param labels: Class indices, [N].
        :param probabilities: Probability of each class, [N, C].
        """
        indices = labels.astype(int)
        error = float(np.mean(probabilities.argmax(axis=1) != indices))
        ece = expected_calibration_error(probabilities, indices)
        return cls(elbo, log_likelihood, error, seconds, ece=ece)

    def in_raw_units(self, target: Standardiser | None) -> Scores:
        """Return scores of standardised targets in the units that these had before.

        :param target: Their standardiser; None for labels, which have no unit.
        """
        if target is None:
            return self
        offset, scale = target.log_density_offset, float(target.scale[0])
        return self._replace(
            elbo=None if self.elbo is None else self.elbo + offset,
            log_likelihood=self.log_likelihood + offset,
            error=self.error * scale,
            crps=None if self.crps is None else self.crps * scale,
        )
