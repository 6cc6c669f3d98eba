"""Posteriors over iterates from several starts."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence

import tensorflow as tf
from gpflow.models import BayesianModel

from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.iterates._saved_iterates import (
    SavedIterates,
    read_saved_iterates,
    saved_iterates_path,
    write_saved_iterates,
)
from gpflow_dwp.iterates.iterate_posterior import IteratePosterior
from gpflow_dwp.iterates.mixture_predictions import MixturePredictions
from gpflow_dwp.random import as_seed, split_seed
from gpflow_dwp.validation import check_integers

__all__ = ["MultiSWAG"]


class MultiSWAG(MixturePredictions):
    """An equal mixture of posteriors from several starts (Wilson and Izmailov, 2020).

    :param members: One posterior for each run, of any kind, each with a model of its own.
    :raises ValueError: If there is none, or two share a model.
    """

    def __init__(self, members: Sequence[IteratePosterior]) -> None:
        if not members:
            raise ValueError("members must hold at least one posterior, got none.")
        if len({id(member.model) for member in members}) < len(members):
            raise ValueError("members must have a model each, got one model twice.")
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

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write what all members have collected into one file, which is replaced in one step.

        :param directory: Where to; made if it is missing.
        :raises ValueError: If it is no path.
        """
        parts = [member._saved() for member in self.members]
        header = {
            "kind": type(self).__name__,
            "num_collected": sum(part.header["num_collected"] for part in parts),
            "members": [part.header for part in parts],
        }
        state = {
            f"{index}.{name}": array
            for index, part in enumerate(parts)
            for name, array in part.state.items()
        }
        write_saved_iterates(saved_iterates_path(directory), SavedIterates(header, state))

    def load(self, directory: str | os.PathLike[str]) -> None:
        """Read what :meth:`save` wrote.

        :raises SavedModelError: See :meth:`IteratePosterior.load`; no member has changed then.
        """
        path = saved_iterates_path(directory)
        header, state = read_saved_iterates(path)
        headers = header.get("members")
        if not isinstance(headers, list) or len(headers) != len(self.members):
            raise SavedModelError(
                f"{path} was not collected by a {type(self).__name__} of {len(self.members)} "
                "members."
            )
        parts = []
        for index, (member, own) in enumerate(zip(self.members, headers, strict=True)):
            prefix = f"{index}."
            arrays = {
                name.removeprefix(prefix): array
                for name, array in state.items()
                if name.startswith(prefix)
            }
            parts.append(SavedIterates(own, arrays))
            member._check(parts[-1], path)
        for member, part in zip(self.members, parts, strict=True):
            member._take(part)
