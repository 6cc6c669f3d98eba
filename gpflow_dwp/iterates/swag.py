"""Averages of iterates, Gaussians around them and factors of them, from one start or several."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.models import BayesianModel

from gpflow_dwp.base import Array
from gpflow_dwp.iterates.iterate_posterior import FactorModel, IteratePosterior, MixturePredictions
from gpflow_dwp.iterates.online_factor_analysis import OnlineEM, OnlineFactorAnalysis
from gpflow_dwp.papers import bibtex
from gpflow_dwp.random import as_seed, split_seed
from gpflow_dwp.validation import check_integers

__all__ = ["SWAG", "FactorAnalysisPosterior", "IterateAverage", "MultiSWAG"]


class IterateAverage(IteratePosterior):
    """Stochastic weight averaging (Izmailov et al., 2018): the mean of the iterates."""

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
        self._check_collected(1)
        mean = tf.convert_to_tensor(self._mean)
        return FactorModel(mean, tf.zeros_like(mean[:, None]), tf.zeros_like(mean))

    def _observe(self, vector: Array) -> None:
        self._mean.assign_add((vector - self._mean) / self.num_collected)


class SWAG(IteratePosterior):
    """Stochastic weight averaging, Gaussian (Maddox et al., 2019).

    Half of the covariance is the variances of all iterates, the other half that of the deviations
    of the last K of them from the mean of their time.

    :param rank: Number of deviations that are kept, K, at least 2.
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


# Of a parameter that did not move, relative to its size.
_LEAST_SCALE = 1e-8


class FactorAnalysisPosterior(IteratePosterior):
    """Factor analysis of the iterates, by an online algorithm (Brownlie, 2021).

    The algorithms expect vectors of about unit variance, so that parameters are divided by their
    standard deviations over the first 2 K iterates, which are kept until then. Nothing is learned
    before the algorithm's warm-up is over, so that more iterates than it takes must be collected.

    :param algorithm: :class:`OnlineEM` or :class:`OnlineGradientAscent`; None for the former with
        10 factors.
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
        self._num_kept = 2 * self.algorithm.rank
        self._first, self._scale = self._zeros(self._num_kept), self._zeros()

    def distribution(self) -> FactorModel:
        """Return the factor model.

        :raises ValueError: If fewer than 2 K iterates were collected, or none after the warm-up.
        """
        self._check_collected(max(self._num_kept, self.algorithm.warm_up + 1))
        mean, factors, variances = self.algorithm.model(self._online)
        scale = self._scale
        return FactorModel(mean * scale, factors * scale[:, None], variances * scale**2)

    def _observe(self, vector: Array) -> None:
        count, vectors = self.num_collected, vector[None]
        if count <= self._num_kept:
            self._first[count - 1].assign(vector)
            if count < self._num_kept:
                return
            vectors = self._first.numpy()
            least = _LEAST_SCALE * np.maximum(1.0, np.abs(vector))
            self._scale.assign(np.maximum(vectors.std(axis=0), least))
        for each in vectors:
            updated = self._update(self._online, each / self._scale)
            for part, value in zip(self._online, updated, strict=True):
                part.assign(value)


class MultiSWAG(MixturePredictions):
    """An equal mixture of posteriors from several starts (Wilson and Izmailov, 2020).

    With a :class:`FactorAnalysisPosterior` for each member it is the extension of Brownlie (2021).

    :param members: One posterior for each run, of any kind, each with a model of its own.
    :raises ValueError: If there is none, or two share a model.
    """

    papers = (
        bibtex(
            "inproceedings",
            "wilson2020bayesian",
            title="{B}ayesian deep learning and a probabilistic perspective of generalization",
            author="Wilson, Andrew Gordon and Izmailov, Pavel",
            booktitle="Advances in Neural Information Processing Systems 33",
            year=2020,
            doi="10.48550/arXiv.2002.08791",
        ),
    )

    def __init__(self, members: Sequence[IteratePosterior]) -> None:
        if not members:
            raise ValueError("members must hold at least one posterior, got none.")
        if len({id(member.model) for member in members}) < len(members):
            raise ValueError("members must have a model each, got one model twice.")
        super().__init__(name="MultiSWAG")
        self.members = tuple(members)

    def at_draws(
        self, num_draws: int, *, seed: int | tf.Tensor | None = 0
    ) -> Generator[BayesianModel, None, None]:
        """Give every member's model its share of the draws; see :class:`MixturePredictions`.

        :raises ValueError: If ``num_draws`` is not a multiple of the number of members.
        """
        check_integers(num_draws=num_draws)
        share, rest = divmod(num_draws, len(self.members))
        if rest:
            raise ValueError(
                f"num_draws must be a multiple of the number of members, {len(self.members)}, "
                f"got {num_draws}."
            )
        seeds = split_seed(as_seed(seed), len(self.members))
        for member, member_seed in zip(self.members, seeds, strict=True):
            yield from member.at_draws(share, seed=member_seed)
