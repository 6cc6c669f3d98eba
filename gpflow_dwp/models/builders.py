"""Ready-made models, by the kind of their hidden layers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from gpflow.kernels import Kernel

from gpflow_dwp.base import TrainingData
from gpflow_dwp.layers import GlobalInducingGramLayer, InverseWishartLayer, WishartLayer
from gpflow_dwp.layers.wishart_posterior import PosteriorFamily
from gpflow_dwp.models.assembly import (
    NOISE_VARIANCE,
    Architecture,
    assemble,
    takes_architecture,
)
from gpflow_dwp.models.deep_kernel_process import (
    DeepGaussianProcess,
    DeepInverseWishartProcess,
    DeepWishartProcess,
)
from gpflow_dwp.validation import check_choice

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "build_deep_gaussian_process",
    "build_deep_inverse_wishart_process",
    "build_deep_wishart_process",
]

# Of the learned scale in a posterior's: that of the published code, sigmoid(-4).
_PAPERS_PROPORTION = 1.0 / (1.0 + float(np.exp(4.0)))


@takes_architecture
def build_deep_wishart_process(
    data: TrainingData,
    depth: int = 3,
    *,
    posterior: PosteriorFamily = "AB",
    whiten: bool = False,
    width: int | None = None,
    expected_log_ratio: bool | None = None,
    stick_the_landing: bool = True,
    **architecture: Unpack[Architecture],
) -> DeepWishartProcess:
    """Build a deep Wishart process (Ober and Aitchison, 2021; Ober, Anson, Milsom and Aitchison,
    2023).

    The papers standardise inputs and outputs on the training rows first; the defaults expect that.

    :param data: Training inputs [N, D] and observations [N, P], of which NaN are missing (see
        :func:`expected_log_likelihoods`); or three, with weights [N] that say how often each row
        counts, with which the model must also be trained.
    :param depth: Number of GP layers of the equivalent deep GP: ``depth - 1`` Wishart layers and
        one output GP.
    :param posterior: Posterior family of every Wishart layer: "GW", "A" or "AB".
    :param whiten: Whether posteriors are relative to the prior's scale: faster, less flexible.
    :param width: Degrees of freedom of every Wishart layer, ν; None for D.
    :param num_inducing: Number of inducing points, M; at most the number of distinct training
        inputs is used.
    :param inducing: "subset": inducing inputs start on random training rows, pseudo-targets on
        their observations. "kmeans": on cluster centres, with the nearest row's observation. Or
        where they start, [M, D], whatever ``num_inducing`` says.
    :param kernel: A name in :data:`KERNELS`, with one lengthscale per input in the first layer
        and one in all others; a kernel, of which each layer gets a copy; or ``depth`` names and
        kernels, bottom first.
    :param mean_function: m(x), added to the output layer's functions: GPflow's ``Constant`` or
        ``Linear``, say, with what it takes for D inputs and Q functions. None for zero.
    :param num_functions: Number of functions, G, where the outputs are mixtures of G independent
        functions, which are learned, and so correlated (see ``mixing`` of
        :class:`GlobalInducingGPLayer`). None for outputs that are independent given the layers
        below.
    :param likelihood: Any of GPflow's or ours, or the name of one whose noise starts at a standard
        deviation of e⁻², for each output its own. "gaussian"; "warped" for noise that is Gaussian
        in a function of the observations that is learned (:class:`WarpedGaussian`), for targets
        that are skewed or have a scale that grows with them; "student_t" for tails that are learned
        (:class:`WarpedStudentT`), for targets of which a few lie far from what the inputs tell;
        "warped_student_t" for both; "heteroskedastic" for Gaussian noise that is a function of the
        inputs (:class:`HeteroskedasticGaussian`).
    :param output: What the output layer's posterior comes from. "pseudo_targets": values and
        precisions at the inducing points that are learned, as in the papers. "regression": sparse
        GP regression on all data, given the Gram matrices (:class:`RegressionGPLayer`): for a
        Gaussian likelihood and up to a few thousand rows, which each step then carries through the
        layers once more. It reaches a higher bound in far fewer steps. None for what
        :func:`suitable_output` says, and the former where observations are missing or functions
        mixed.
    :param num_samples: Number of draws in each training step, S; None for 2, and for 10 by the
        papers. More draws make steps dearer and less noisy.
    :param expected_log_ratio: See :class:`WishartLayer`; None for True, or by the papers False.
    :param stick_the_landing: See :class:`WishartLayer`.
    :param jitter: Added to the diagonals that are factorised, relative to their means; None for
        GPflow's ``default_jitter()`` when the model is built.
    :param protocol: "papers" for the papers' model, which :func:`fit` trains as they do: a learned
        output, ten draws, sampled log ratios, and q of :class:`WishartLayer` at 0.018, where the
        published code starts. "fast" for what takes fewer steps.
    :param seed: Seed of the starting values.
    :raises ScaleWarning: As a warning, where a column is far from standardised.
    :raises ValueError: If an argument is not one of its choices, not a positive integer, does not
        fit the data or needs more memory than there is; or if the data are not two matrices of one
        length, with finite numbers but for missing observations.
    """
    check_choice(get_args(PosteriorFamily), posterior=posterior)  # also where no layer has it
    of_papers = architecture.get("protocol") == "papers"
    of_layers: dict[str, Any] = {"proportion": _PAPERS_PROPORTION} if of_papers else {}
    layer = functools.partial(
        WishartLayer,
        posterior=posterior,
        whiten=whiten,
        expected_log_ratio=not of_papers if expected_log_ratio is None else expected_log_ratio,
        stick_the_landing=stick_the_landing,
        **of_layers,
    )
    return assemble(DeepWishartProcess, layer, data, depth, width=width, **architecture)


@takes_architecture
def build_deep_gaussian_process(
    data: TrainingData,
    depth: int = 3,
    *,
    width: int | None = None,
    hidden_ard: bool = False,
    **architecture: Unpack[Architecture],
) -> DeepGaussianProcess:
    """Build the deep Gaussian process with the prior of a deep Wishart process.

    :param depth: Number of GP layers.
    :param width: Number of features of every hidden layer, ν; None for D.
    :param hidden_ard: Whether every kernel has a lengthscale for each feature below it (automatic
        relevance determination), not the first one alone, as in bayesfunc, the authors' library.
        The prior is then no deep Wishart process's. See ``feature_scales`` of
        :class:`GlobalInducingGramLayer`, which start at 1.

    All else is as for :func:`build_deep_wishart_process`.
    """

    def layer(
        kernel: Kernel, width: int, num_inducing: int, **options: Any
    ) -> GlobalInducingGramLayer:
        return GlobalInducingGramLayer(
            kernel,
            width,
            num_inducing,
            precision=1.0 / NOISE_VARIANCE,
            feature_scales=np.ones(width) if hidden_ard else None,
            **options,
        )

    return assemble(DeepGaussianProcess, layer, data, depth, width=width, **architecture)


@takes_architecture
def build_deep_inverse_wishart_process(
    data: TrainingData,
    depth: int = 3,
    *,
    expected_log_ratio: bool | None = None,
    **architecture: Unpack[Architecture],
) -> DeepInverseWishartProcess:
    """Build a deep inverse Wishart process.

    :param depth: Number of kernels: ``depth - 1`` inverse Wishart layers and one output GP. The
        layers' degrees of freedom are learned, so there is no width.
    :param expected_log_ratio: See :class:`InverseWishartLayer`; None for True, and for False by the
        papers.

    All else is as for :func:`build_deep_wishart_process`.
    """

    if expected_log_ratio is None:
        expected_log_ratio = architecture.get("protocol") != "papers"

    def layer(kernel: Kernel, width: int, num_inducing: int, **options: Any) -> InverseWishartLayer:
        del width  # it has none
        return InverseWishartLayer(
            kernel, num_inducing, expected_log_ratio=expected_log_ratio, **options
        )

    return assemble(DeepInverseWishartProcess, layer, data, depth, width=None, **architecture)
