"""What is tried, and what comes of it."""

from __future__ import annotations

from typing import NamedTuple

from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.training import TrainingHistory

__all__ = ["Candidate", "LeaveOneOut", "Selection"]


class LeaveOneOut(NamedTuple):
    """Scores of what a model predicts of each row from all others.

    :param log_density: Mean log density, per unit of the observations; of those that are recorded
        to a step that of their cells.
    :param crps: Mean continuous ranked probability score, in the unit of the observations.
    """

    log_density: float
    crps: float


class Candidate(NamedTuple):
    """A model that was tried.

    :param depth: GP layers of the equivalent deep GP.
    :param kernel: Name of the layers' kernels; "SeparateIndependent" where each output has its own.
    :param ard: Whether each input has a lengthscale of its own.
    :param likelihood: Name of its likelihood.
    :param width: Degrees of freedom of its Wishart layers, ν; None without any.
    :param num_data: Number of rows that it was fitted to, N.
    :param elbo: Its bound of these rows' evidence, in nats.
    :param loo: Leave-one-out scores, in the model's units; None where they were not computed.
    :param seconds: Wall-clock time of its fit.
    """

    depth: int
    kernel: str
    ard: bool
    likelihood: str
    width: int | None
    num_data: int
    elbo: float
    loo: LeaveOneOut | None
    seconds: float


class Selection(NamedTuple):
    """The best of the models that were tried.

    :param model: The trained model.
    :param history: The trace of its training. Of a regression with a single layer it is what
        L-BFGS maximised, at each iteration and all in the data's term: the bound, with the log
        density of the parameters' priors.
    :param best: The candidate that the model is.
    :param candidates: All that were tried, in their order.
    :param reason: One sentence that says why.
    """

    model: DeepWishartProcess
    history: TrainingHistory
    best: Candidate
    candidates: tuple[Candidate, ...]
    reason: str
