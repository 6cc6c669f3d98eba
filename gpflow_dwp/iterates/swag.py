"""Averages of iterates, and Gaussians around them."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from gpflow.models import BayesianModel

from gpflow_dwp.base import Array
from gpflow_dwp.iterates.factor_model import FactorModel
from gpflow_dwp.iterates.iterate_posterior import IteratePosterior
from gpflow_dwp.papers import bibtex
from gpflow_dwp.validation import check_integers

__all__ = ["SWAG", "IterateAverage"]


class IterateAverage(IteratePosterior):
    """Stochastic weight averaging (Izmailov et al., 2018): the mean of the iterates.

    :param model: A GPflow model.
    :param start_step: Iterates of a run up to this step are not collected.
    """

    papers = (
        bibtex(
            "inproceedings",
            "izmailov2018averaging",
            title="Averaging weights leads to wider optima and better generalization",
            author="Izmailov, Pavel and Podoprikhin, Dmitrii and Garipov, Timur and Vetrov, Dmitry "
            "and Wilson, Andrew Gordon",
            booktitle="Uncertainty in Artificial Intelligence",
            year=2018,
            doi="10.48550/arXiv.1803.05407",
        ),
    )

    def __init__(self, model: BayesianModel, start_step: int = 0) -> None:
        super().__init__(model, start_step)
        self._mean = self._zeros()

    def distribution(self) -> FactorModel:
        """Return the mean, without spread."""
        self._check_collected(1)
        mean = tf.convert_to_tensor(self._mean)
        return FactorModel(mean, tf.zeros_like(mean[:, None]), tf.zeros_like(mean))

    def _observe(self, vector: Array) -> None:
        self._mean.assign_add((vector - self._mean) / self.num_collected)


class SWAG(IteratePosterior):
    """Stochastic weight averaging, Gaussian (Maddox et al., 2019).

    Half of the covariance is the variances of all iterates, the other half that of the deviations
    of the last K of them from the mean of their time.

    :param model: A GPflow model.
    :param rank: Number of deviations that are kept, K, at least 2.
    :param start_step: Iterates of a run up to this step are not collected.
    :raises ValueError: If ``rank`` is not an integer of at least 2.
    """

    papers = (
        bibtex(
            "inproceedings",
            "maddox2019simple",
            title="A simple baseline for {B}ayesian uncertainty in deep learning",
            author="Maddox, Wesley J. and Garipov, Timur and Izmailov, Pavel and Vetrov, Dmitry "
            "and Wilson, Andrew Gordon",
            booktitle="Advances in Neural Information Processing Systems 32",
            year=2019,
            doi="10.48550/arXiv.1902.02476",
        ),
    )

    def __init__(self, model: BayesianModel, rank: int = 20, start_step: int = 0) -> None:
        super().__init__(model, start_step)
        check_integers(at_least=2, rank=rank)
        self.rank = rank
        self._mean, self._sum_of_squares = self._zeros(), self._zeros()
        self._deviations = self._zeros(rank)

    def distribution(self) -> FactorModel:
        """Return the Gaussian of section 3.3 of the paper.

        :raises ValueError: If fewer than K iterates were collected.
        """
        self._check_collected(self.rank)
        variances = self._sum_of_squares / self.num_collected
        factors = tf.transpose(self._deviations) / np.sqrt(2.0 * (self.rank - 1))
        return FactorModel(tf.convert_to_tensor(self._mean), factors, 0.5 * variances)

    def _observe(self, vector: Array) -> None:
        # Welford's update: a difference of two second moments would lose small variances.
        before = vector - self._mean
        self._mean.assign_add(before / self.num_collected)
        deviation = vector - self._mean
        self._sum_of_squares.assign_add(before * deviation)
        self._deviations.assign(tf.concat([self._deviations[1:], deviation[None]], axis=0))
