"""What a model with any hidden layers is built with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict, get_args

from gpflow.functions import MeanFunction
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood

from gpflow_dwp.base import Array
from gpflow_dwp.likelihoods.named import LikelihoodName
from gpflow_dwp.validation import check_choice, check_integers

__all__ = [
    "Architecture",
    "ArchitectureFields",
    "InducingChoice",
    "InducingInputs",
    "ModelProtocol",
    "OutputPosterior",
]

InducingChoice = Literal["subset", "kmeans"]
"""Where inducing inputs start: on random training rows, or on cluster centres."""

InducingInputs = InducingChoice | InducingPoints | Array
"""The same, or on given points."""

OutputPosterior = Literal["pseudo_targets", "regression", "nearest_neighbours"]
"""What the output layer's posterior comes from: learned pseudo-targets, all data, or near ones."""

ModelProtocol = Literal["fast", "papers"]
"""Whose choices a model is built with: this package's, or the papers'."""


class ArchitectureFields(TypedDict, total=False):
    """The fields of an :class:`Architecture`, as builders take them by name."""

    num_inducing: int
    inducing: InducingInputs
    kernel: str | Kernel | Sequence[str | Kernel]
    mean_function: MeanFunction | None
    likelihood: Likelihood | LikelihoodName
    output: OutputPosterior | None
    num_samples: int | None
    jitter: float | None
    protocol: ModelProtocol
    seed: int


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """What a model is built with, whatever its hidden layers are.

    The builders take each of these by name.

    :param num_inducing: Number of inducing points, M; at most the number of distinct training
        inputs is used.
    :param inducing: "subset": inducing inputs start on random training rows, pseudo-targets on
        their observations. "kmeans": on cluster centres, with the nearest row's observation. Or
        where they start, [M, D], whatever ``num_inducing`` says.
    :param kernel: A name in :data:`KERNELS`, with one lengthscale per input in the first layer
        and one in all others; a kernel, of which each layer gets a copy; or ``depth`` names and
        kernels, bottom first. The last may be GPflow's ``SeparateIndependent``, of a kernel for
        each output, or ``LinearCoregionalization``, whose outputs are mixtures of independent
        functions, and so correlated.
    :param mean_function: m(x), added to the output layer's functions: GPflow's ``Constant`` or
        ``Linear``, say, with what it takes for D inputs and Q functions. None for zero.
    :param likelihood: Any of GPflow's or ours, or the name of one whose noise starts at a standard
        deviation of e⁻², for each output its own. "gaussian"; "warped" for noise that is Gaussian
        in a function of the observations that is learned (:class:`WarpedGaussian`), for targets
        that are skewed or have a scale that grows with them; "student_t" for tails that are learned
        (:class:`WarpedStudentT`), for targets of which a few lie far from what the inputs tell;
        "warped_student_t" for both; "heteroskedastic" for Gaussian noise that is a function of the
        inputs, which has a kernel and precisions of its own (:class:`HeteroskedasticGaussian`).
    :param output: What the output layer's posterior comes from. "pseudo_targets": values and
        precisions at the inducing points that are learned, as in the papers. "regression": sparse
        GP regression on all data, given the Gram matrices (:class:`RegressionGPLayer`): for a
        Gaussian likelihood and up to a few thousand rows, which each step then carries through the
        layers once more. It reaches a higher bound in far fewer steps. "nearest_neighbours": each
        row is predicted from the 50 nearest (:class:`NearestNeighbourGPLayer`), which sees what
        inducing points are too few for. None for what
        :func:`suitable_output` says, and the first where functions are mixed, or observations are
        missing and outputs share a kernel.
    :param num_samples: Number of draws in each training step, S; None for 2, and for 10 by the
        papers. More draws make steps dearer and less noisy.
    :param jitter: Added to the diagonals that are factorised, relative to their means; None for
        GPflow's ``default_jitter()`` when the model is built.
    :param protocol: "papers" for the papers' model, which :func:`fit` trains as they do: a learned
        output, ten draws, sampled log ratios, lengthscales of the inputs that start at √D, as the
        papers' first kernel is one of X Xᵀ / D, and q of a Wishart layer at 0.018, where the
        published code starts. "fast" for what takes fewer steps.
    :param seed: Seed of the starting values.
    :raises ValueError: If a field is not one of its choices, or not a positive integer.
    """

    num_inducing: int = 100
    inducing: InducingInputs = "subset"
    kernel: str | Kernel | Sequence[str | Kernel] = "SquaredExponential"
    mean_function: MeanFunction | None = None
    likelihood: Likelihood | LikelihoodName = "gaussian"
    output: OutputPosterior | None = None
    num_samples: int | None = None
    jitter: float | None = None
    protocol: ModelProtocol = "fast"
    seed: int = 0

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Architecture:
        """Take fields by name, as builders do, and refuse others by a :class:`TypeError`."""
        names = [field.name for field in fields(cls)]
        for name in given.keys() - names:
            raise TypeError(f"{name} is no argument of a builder, which takes {', '.join(names)}.")
        return cls(**given)

    def __post_init__(self) -> None:
        check_choice(get_args(ModelProtocol), protocol=self.protocol)
        if self.output is not None:
            check_choice(get_args(OutputPosterior), output=self.output)
        check_integers(num_inducing=self.num_inducing)
