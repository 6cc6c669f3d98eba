"""Ready-made models, by the kind of their hidden layers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from gpflow.kernels import Kernel

from gpflow_dwp.base import TrainingData
from gpflow_dwp.layers import GlobalInducingGramLayer, InverseWishartLayer, WishartLayer
from gpflow_dwp.layers.wishart_posterior import PosteriorFamily
from gpflow_dwp.models.architecture import Architecture, ArchitectureFields
from gpflow_dwp.models.assembly import NOISE_VARIANCE, assemble
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


def build_deep_wishart_process(
    data: TrainingData,
    depth: int = 3,
    *,
    posterior: PosteriorFamily = "AB",
    whiten: bool = False,
    width: int | None = None,
    expected_log_ratio: bool | None = None,
    **fields: Unpack[ArchitectureFields],
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
    :param expected_log_ratio: See :class:`WishartLayer`; None for True, or by the papers False.
    :param fields: Those of an :class:`Architecture`: ``num_inducing``, ``kernel``, ``likelihood``
        and more.
    :raises ValueError: If an argument is not one of its choices, not a positive integer, does not
        fit the data or needs more memory than there is; or if the data are not two matrices of one
        length, with finite numbers but for missing observations.
    """
    check_choice(get_args(PosteriorFamily), posterior=posterior)  # also where no layer has it
    of_papers = fields.get("protocol") == "papers"
    of_layers: dict[str, Any] = {"proportion": _PAPERS_PROPORTION} if of_papers else {}
    layer = functools.partial(
        WishartLayer,
        posterior=posterior,
        whiten=whiten,
        expected_log_ratio=not of_papers if expected_log_ratio is None else expected_log_ratio,
        **of_layers,
    )
    return assemble(DeepWishartProcess, layer, data, depth, Architecture.of(fields), width=width)


def build_deep_gaussian_process(
    data: TrainingData,
    depth: int = 3,
    *,
    width: int | None = None,
    hidden_ard: bool = False,
    **fields: Unpack[ArchitectureFields],
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

    return assemble(DeepGaussianProcess, layer, data, depth, Architecture.of(fields), width=width)


def build_deep_inverse_wishart_process(
    data: TrainingData,
    depth: int = 3,
    *,
    expected_log_ratio: bool | None = None,
    **fields: Unpack[ArchitectureFields],
) -> DeepInverseWishartProcess:
    """Build a deep inverse Wishart process.

    :param depth: Number of kernels: ``depth - 1`` inverse Wishart layers and one output GP. The
        layers' degrees of freedom are learned, so there is no width.
    :param expected_log_ratio: See :class:`InverseWishartLayer`; None for True, and for False by the
        papers.

    All else is as for :func:`build_deep_wishart_process`.
    """

    if expected_log_ratio is None:
        expected_log_ratio = fields.get("protocol") != "papers"

    def layer(kernel: Kernel, width: int, num_inducing: int, **options: Any) -> InverseWishartLayer:
        del width  # it has none
        return InverseWishartLayer(
            kernel, num_inducing, expected_log_ratio=expected_log_ratio, **options
        )

    return assemble(
        DeepInverseWishartProcess, layer, data, depth, Architecture.of(fields), width=None
    )
