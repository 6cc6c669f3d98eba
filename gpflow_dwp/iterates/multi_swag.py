"""Posteriors over iterates from several starts."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import tensorflow as tf
from gpflow.models import BayesianModel

from gpflow_dwp.iterates.iterate_posterior import IteratePosterior
from gpflow_dwp.iterates.mixture_predictions import MixturePredictions
from gpflow_dwp.papers import bibtex
from gpflow_dwp.random import as_seed, split_seed
from gpflow_dwp.validation import check_integers

__all__ = ["MultiSWAG"]


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
