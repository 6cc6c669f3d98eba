"""What is tried, and what comes of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from gpflow_dwp.likelihoods import Noise
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.training import TrainingHistory

__all__ = ["CANDIDATE_KERNELS", "Auto", "Candidate", "Selection"]

Auto = Literal["auto"]
"""What leaves a choice to the bound."""

CANDIDATE_KERNELS = ("SquaredExponential", "Matern52", "Matern32")
"""Kernels that are tried where none is asked for."""


class Candidate(NamedTuple):
    """A model that was tried.

    :param depth: GP layers of the equivalent deep GP.
    :param kernel: Name of the layers' kernels.
    :param ard: Whether each input has a lengthscale of its own.
    :param warp: Whether its observations are warped.
    :param noise: Distribution of its noise.
    :param num_data: Number of rows that it was fitted to, N.
    :param elbo: Its bound of these rows' evidence, in nats.
    :param seconds: Wall-clock time of its fit.
    """

    depth: int
    kernel: str
    ard: bool
    warp: bool
    noise: Noise
    num_data: int
    elbo: float
    seconds: float


class Selection(NamedTuple):
    """The best of the models that were tried.

    :param model: The trained model.
    :param history: The course of its training. Of a regression with a single layer it is what
        L-BFGS maximised, at each iteration and all in the data's term: the bound, with the log
        density of the parameters' priors.
    :param best: The candidate that the model is.
    :param candidates: All that were tried, in their order.
    """

    model: DeepWishartProcess
    history: TrainingHistory
    best: Candidate
    candidates: tuple[Candidate, ...]
