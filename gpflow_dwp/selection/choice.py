"""What models are chosen among, and how they are trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, get_args

from gpflow.likelihoods import Gaussian, Likelihood

from gpflow_dwp.layers.wishart_posterior import PosteriorFamily
from gpflow_dwp.likelihoods.named import LikelihoodName
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.models import KERNELS
from gpflow_dwp.models.architecture import InducingInputs, OutputPosterior
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.candidates import Candidate
from gpflow_dwp.selection.policy import Effort
from gpflow_dwp.validation import check_choice, check_instance, check_integers, is_known

__all__ = ["CANDIDATE_KERNELS", "OF_MODELS", "Auto", "Choice", "ChoiceFields", "is_auto"]

Auto = Literal["auto"]
"""What leaves a choice to the scores."""

CANDIDATE_KERNELS = ("SquaredExponential", "Matern52", "Matern32")
"""Kernels that are tried where none is asked for."""

OF_MODELS = ("posterior", "whiten", "width", "inducing", "num_samples")
"""What builders call by the same names, and no choice changes."""


class ChoiceFields(TypedDict, total=False):
    """The fields of a :class:`Choice`, as :func:`select_model` takes them by name."""

    depth: int | Auto
    kernel: str | Auto
    candidates: Sequence[Candidate] | None
    likelihood: Likelihood | LikelihoodName | Auto
    row_means: RowMeansGaussian | None
    may_warp: bool
    effort: Effort
    num_inducing: int | Auto
    posterior: PosteriorFamily
    whiten: bool
    width: int | None
    output: OutputPosterior | None
    inducing: InducingInputs
    num_steps: int | None
    batch_size: int | None
    num_samples: int
    patience: int


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What is chosen, of what, and how models are trained meanwhile.

    :func:`select_model` takes each of these by name.

    :param depth: GP layers of the equivalent deep GP; "auto" for 1, or more where that pays.
    :param kernel: A name in :data:`gpflow_dwp.models.KERNELS`, for all layers; "auto" for
        a squared exponential, Matérn 5/2 or 3/2, with or without a lengthscale for each input, a
        sum of functions of single inputs (:func:`gpflow_dwp.kernels.additive_kernel`), and
        without noise a separable Matérn 5/2 in a single layer, and of categories one of levels
        (:class:`gpflow_dwp.kernels.LevelsMatern52`); for a likelihood that is given
        the first of them, or a sum. Of several outputs each may have one of its own.
    :param candidates: Models to try in place of the usual ones; then depth and kernel stay "auto".
        Single layers among them are fitted first, deep ones start from a single layer of their
        kernel and are trained side by side, as the usual ones are.
    :param likelihood: One that is given, or the name of one; "auto" for the one that predicts best:
        see :data:`gpflow_dwp.likelihoods.LikelihoodName`.
    :param row_means: Gaussian noise of rows that are means, or of one output whose noise is known;
        then weights of the data are those that it says, and ``likelihood`` is "gaussian".
    :param may_warp: Whether without noise a warp of one output may be learned.
    :param effort: "quick" tries single layers only, "default" depth 2 as well, "thorough" takes
        more steps, and tries depth 3, too.
    :param num_inducing: Number of inducing points, M, at most; "auto" for all rows up to 1,000 and
        fewer above in a single layer; where gradient steps are taken, for 100, and with
        minibatches of numbers for 200.
    :param posterior: Posterior family of every Wishart layer; like the next five, as for
        :func:`build_deep_wishart_process`.
    :param whiten: Whether posteriors are relative to the prior's scale.
    :param width: Degrees of freedom of every Wishart layer, ν; None for 5 where there are as many
        inputs or more, and for what predicts better, 5 or their number, where there are fewer:
        their number if depth and kernel are given. As many as inputs where bounds choose.
    :param output: What the output layer's posterior comes from, at all depths.
    :param inducing: Where inducing inputs start: "subset", "kmeans" or a matrix, [M, D].
    :param num_steps: Gradient steps of a model that takes such, at most, and half of them in a
        single layer, unless its noise is heteroskedastic; None for 1,000, with minibatches of
        numbers for 600, and in deep regressions for 3,000 (2,500 above 500 rows, from 850 to
        2,000 rows less, down to 1,060), or 8,000 if ``effort`` is "thorough".
    :param batch_size: Rows of a minibatch in these steps; None for all up to 2,000 rows and for
        1,000 above, in deep models of noisy numbers above 1,000 rows; of another likelihood, for
        all up to 500 and for 500 above.
    :param num_samples: Number of draws in each of these steps, S.
    :param patience: After how many judgements without a better density a run ends.
    :raises ValueError: If a field is not one of its choices, or not a positive integer.
    """

    depth: int | Auto = "auto"
    kernel: str | Auto = "auto"
    candidates: Sequence[Candidate] | None = None
    likelihood: Likelihood | LikelihoodName | Auto = "auto"
    row_means: RowMeansGaussian | None = None
    may_warp: bool = True
    effort: Effort = "default"
    num_inducing: int | Auto = "auto"
    posterior: PosteriorFamily = "AB"
    whiten: bool = False
    width: int | None = None
    output: OutputPosterior | None = None
    inducing: InducingInputs = "subset"
    num_steps: int | None = None
    batch_size: int | None = None
    num_samples: int = 2
    patience: int = 10

    def __post_init__(self) -> None:
        if self.candidates is not None:
            check_instance(Sequence, candidates=self.candidates)
            for each in self.candidates:
                check_instance(Candidate, candidates=each)
            if not (self.candidates and is_auto(self.depth) and is_auto(self.kernel)):
                raise ValueError(
                    'candidates must be one or more, with depth="auto" and kernel="auto", got '
                    f"{len(self.candidates)}, with depth={self.depth!r} and kernel={self.kernel!r}."
                )
        counts = {
            name: getattr(self, name)
            for name in ("depth", "num_inducing", "num_steps", "batch_size")
            if not (getattr(self, name) is None or is_auto(getattr(self, name)))
        }
        check_integers(**counts, num_samples=self.num_samples, patience=self.patience)
        if not is_auto(self.kernel):
            check_choice(KERNELS, kernel=self.kernel)
        if not isinstance(self.likelihood, Likelihood):
            check_choice((*get_args(LikelihoodName), "auto"), likelihood=self.likelihood)
        elif is_known(self.likelihood, Gaussian):
            raise ValueError(
                'likelihood must be a name where the noise is Gaussian, such as "gaussian" or '
                '"noise_free", got an object.'
            )
        check_choice(get_args(Effort), effort=self.effort)

    @property
    def depths(self) -> Sequence[int]:
        """What is tried, in ascending order."""
        if self.candidates is not None:
            return sorted({each.depth for each in self.candidates})
        deepest = policy.DEEPEST[self.effort]
        return range(1, deepest + 1) if is_auto(self.depth) else [int(self.depth)]

    @property
    def most_iterations(self) -> int:
        """Of L-BFGS in single layers."""
        return 100 if self.num_steps is None else self.num_steps

    @property
    def of_models(self) -> dict[str, Any]:
        """Those of :data:`OF_MODELS`."""
        return {name: getattr(self, name) for name in OF_MODELS}


def is_auto(choice: Any) -> bool:
    """Whether a choice is left to the scores, also of what is compared entry by entry."""
    return isinstance(choice, str) and choice == "auto"
