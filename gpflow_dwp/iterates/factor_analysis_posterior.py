"""Factor analysis of the iterates of a training run."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.models import BayesianModel

from gpflow_dwp.base import Array
from gpflow_dwp.iterates.factor_model import FactorModel
from gpflow_dwp.iterates.iterate_posterior import IteratePosterior
from gpflow_dwp.iterates.online_factor_analysis import OnlineEM, OnlineFactorAnalysis
from gpflow_dwp.papers import bibtex

__all__ = ["FactorAnalysisPosterior"]

# Of a parameter that did not move, relative to its size.
_LEAST_SCALE = 1e-8


class FactorAnalysisPosterior(IteratePosterior):
    """Factor analysis of the iterates, by an online algorithm (Brownlie, 2021).

    The algorithms expect vectors of about unit variance, so that parameters are divided by their
    standard deviations over the first 2 K iterates, which are kept until then. Nothing is learned
    before the algorithm's warm-up is over, so that more iterates than it takes must be collected.

    :param model: A GPflow model.
    :param algorithm: :class:`OnlineEM` or :class:`OnlineGradientAscent`; None for the former with
        10 factors.
    :param start_step: Iterates of a run up to this step are not collected.
    :param seed: Seed of the factors' starting values.
    """

    papers = (
        bibtex(
            "mastersthesis",
            "brownlie2021extending",
            title="Extending the {B}ayesian deep learning method {M}ulti{SWAG}",
            author="Brownlie, Scott",
            school="School of Informatics, University of Edinburgh",
            year=2021,
        ),
    )

    def __init__(
        self,
        model: BayesianModel,
        algorithm: OnlineFactorAnalysis[Any] | None = None,
        start_step: int = 0,
        *,
        seed: int = 0,
    ) -> None:
        super().__init__(model, start_step)
        self.algorithm = OnlineEM(10) if algorithm is None else algorithm
        # Statistics are in float64 also where the model is in float32.
        with gpflow.config.as_context(gpflow.config.Config(float=np.float64)):
            start = self.algorithm.init(self._dimension, seed=seed)
        self._online = type(start)(*(tf.Variable(part, trainable=False) for part in start))
        self._update = tf.function(self.algorithm.update, autograph=False)
        self._first, self._scale = self._zeros(self._num_kept), self._zeros()

    def distribution(self) -> FactorModel:
        """Return the factor model.

        :raises ValueError: If fewer than 2 K iterates were collected, or none after the warm-up.
        """
        self._check_collected(max(self._num_kept, self.algorithm.warm_up + 1))
        mean, factors, variances = self.algorithm.model(self._online)
        scale = self._scale
        return FactorModel(mean * scale, factors * scale[:, None], variances * scale**2)

    @property
    def _num_kept(self) -> int:
        return 2 * self.algorithm.rank

    def _observe(self, vector: Array) -> None:
        count, kept = self.num_collected, self._num_kept
        if count > kept:
            self._update_by(vector)
            return
        self._first[count - 1].assign(vector)
        if count == kept:
            least = _LEAST_SCALE * np.maximum(1.0, np.abs(vector))
            self._scale.assign(np.maximum(self._first.numpy().std(axis=0), least))
            for first in self._first.numpy():
                self._update_by(first)

    def _update_by(self, vector: Array) -> None:
        updated = self._update(self._online, vector / self._scale)
        for part, value in zip(self._online, updated, strict=True):
            part.assign(value)
