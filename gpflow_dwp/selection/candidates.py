"""What is tried, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

from gpflow_dwp.layers import GramLayer
from gpflow_dwp.layers.wishart_posterior import PosteriorFamily
from gpflow_dwp.models import KERNELS, DeepWishartProcess
from gpflow_dwp.selection.comparison import Comparison
from gpflow_dwp.selection.scores import LeaveOneOut
from gpflow_dwp.training import TrainingHistory
from gpflow_dwp.validation import check_choice, check_integers

__all__ = ["SINGLE", "Candidate", "Selection", "Trial"]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A model to try.

    :param depth: GP layers of the equivalent deep GP.
    :param kernel: A name in :data:`gpflow_dwp.models.KERNELS`, for all layers, or a name for each,
        bottom first; None for that of the best single layer.
    :param width: Degrees of freedom of every Wishart layer, ν; None for what is asked for of all.
    :param posterior: Posterior family of every Wishart layer; None for what is asked for of all.
    :param layer: Called with each Wishart layer, for the one to stand in its place, such as
        :class:`gpflow_dwp.layers.SkipLayer`; None for the layer itself.
    :raises ValueError: If a field is not one of its choices, or not a positive integer.
    """

    depth: int = 2
    kernel: str | Sequence[str] | None = None
    width: int | None = None
    posterior: PosteriorFamily | None = None
    layer: Callable[[GramLayer], GramLayer] | None = None

    def __post_init__(self) -> None:
        check_integers(depth=self.depth)
        if self.width is not None:
            check_integers(width=self.width)
        for name in self.kernels:
            check_choice(KERNELS, kernel=name)
        if len(self.kernels) not in (0, self.depth):
            raise ValueError(
                f"kernel must be {self.depth} names, one a layer, got {len(self.kernels)}."
            )
        if self.posterior is not None:
            check_choice(get_args(PosteriorFamily), posterior=self.posterior)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the layers' kernels, bottom first; none where no kernel is given."""
        if isinstance(self.kernel, str):
            return (self.kernel,) * self.depth
        return tuple(self.kernel or ())


SINGLE = Candidate(depth=1)
"""The best single layer."""


class Trial(NamedTuple):
    """A model that was tried, and its scores.

    :param depth: GP layers of the equivalent deep GP.
    :param kernel: Name of the layers' kernels; "SeparateIndependent" where each output has its own.
    :param ard: Whether each input has a lengthscale of its own.
    :param likelihood: Name of its likelihood.
    :param width: Degrees of freedom of its Wishart layers, ν; None without any.
    :param num_data: Number of rows that it was fitted to, N.
    :param elbo: Its bound of these rows' evidence, in nats; of single layers of many rows N times
        the mean over some of them, given their nearest.
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
    :param best: The one that the model is.
    :param candidates: All that were tried, in their order.
    :param reasons: Why: comparisons, and sentences.
    """

    model: DeepWishartProcess
    history: TrainingHistory
    best: Trial
    candidates: tuple[Trial, ...]
    reasons: tuple[str | Comparison, ...]

    @property
    def reason(self) -> str:
        """Why, in words; scores are in the model's units."""
        return self.told()

    def told(self, scale: float | None = None) -> str:
        """Why, in words.

        :param scale: As for :meth:`Comparison.sentence`.
        """
        reasons = (each if isinstance(each, str) else each.sentence(scale) for each in self.reasons)
        return " ".join(reasons)
