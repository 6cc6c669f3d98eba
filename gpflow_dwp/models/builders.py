"""Ready-made models: every default lives here, with its reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeVar, get_args

import gpflow
import numpy as np
from gpflow.base import RegressionData
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood

from gpflow_dwp.data import check_pair
from gpflow_dwp.layers import (
    GlobalInducingGPLayer,
    GlobalInducingGramLayer,
    GramLayer,
    InverseWishartLayer,
    LatentVariableLayer,
    NetworkEncoder,
    OutputLayer,
    PosteriorFamily,
    RegressionGPLayer,
    WishartLayer,
)
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedGaussian
from gpflow_dwp.linalg import as_jitter
from gpflow_dwp.models._named_kernels import make_kernels, positive_by_exp
from gpflow_dwp.models._starting_values import (
    initial_inducing,
    initial_precision,
    initial_pseudo_targets,
)
from gpflow_dwp.models.base import DeepKernelProcess
from gpflow_dwp.models.data_checks import check_observations
from gpflow_dwp.models.deep_gaussian_process import DeepGaussianProcess
from gpflow_dwp.models.deep_inverse_wishart_process import DeepInverseWishartProcess
from gpflow_dwp.models.deep_wishart_process import DeepWishartProcess
from gpflow_dwp.models.output_posterior import OutputPosterior, suitable_output
from gpflow_dwp.random import as_generator
from gpflow_dwp.validation import check_choice, check_flags, check_integers, check_memory

__all__ = [
    "InducingChoice",
    "build_deep_gaussian_process",
    "build_deep_inverse_wishart_process",
    "build_deep_wishart_process",
]

Model = TypeVar("Model", bound=DeepKernelProcess)

InducingChoice = Literal["subset", "kmeans"]
"""Where inducing inputs start: on random training rows, or on cluster centres."""

# The papers start at a noise standard deviation of e⁻².
_NOISE_VARIANCE = float(np.exp(-4.0))


class _Place(NamedTuple):
    """What a hidden layer is told of its place in a model."""

    kernel: Kernel
    width: int
    num_inducing: int
    rng: np.random.Generator


def build_deep_wishart_process(
    data: RegressionData,
    depth: int = 3,
    *,
    posterior: PosteriorFamily = "AB",
    whiten: bool = False,
    width: int | None = None,
    num_inducing: int = 100,
    inducing: InducingChoice = "subset",
    kernel: str | Sequence[Kernel] = "SquaredExponential",
    likelihood: Likelihood | None = None,
    warp: bool = False,
    output: OutputPosterior | None = None,
    num_samples: int = 2,
    expected_log_ratio: bool = True,
    stick_the_landing: bool = True,
    latent_dim: int = 0,
    jitter: float | None = None,
    seed: int = 0,
) -> DeepWishartProcess:
    """Build a deep Wishart process with the papers' defaults.

    The papers (Ober and Aitchison, 2021; Ober, Anson, Milsom and Aitchison, 2023) standardise
    inputs and outputs on the training rows first; these defaults expect that.

    :param data: Training inputs [N, D] and observations [N, P].
    :param depth: Number of GP layers of the equivalent deep GP: ``depth - 1`` Wishart layers and
        one output GP.
    :param posterior: Posterior family of every Wishart layer: "GW", "A" or "AB".
    :param whiten: Whether posteriors are relative to the prior's scale: faster, less flexible.
    :param width: ν of every Wishart layer; None for D (and latent variables).
    :param num_inducing: M; at most the number of distinct training inputs is used.
    :param inducing: "subset": inducing inputs start on random training rows, pseudo-targets on
        their observations. "kmeans": on cluster centres, with the nearest row's observation.
    :param kernel: A name in :data:`KERNELS`, with one lengthscale per input in the first layer
        and one in all others; or ``depth`` kernels, bottom first.
    :param likelihood: None for a Gaussian one with standard deviation e⁻², for each output its own.
    :param warp: Whether the noise is Gaussian in a function of the observations, a
        :class:`SinhArcsinh` that is learned, and not in the observations themselves; see
        :class:`WarpedGaussian`. For targets that are skewed, or have a scale that grows with them.
    :param output: What the output layer's posterior comes from. "pseudo_targets": values and
        precisions at the inducing points that are learned, as in the papers. "regression": sparse
        GP regression on all data, given the Gram matrices (:class:`RegressionGPLayer`): for a
        Gaussian likelihood and up to a few thousand rows, which each step then carries through the
        layers once more. It reaches a higher bound in far fewer steps. None for what
        :func:`suitable_output` says.
    :param num_samples: S in training. More draws make steps dearer and less noisy; the papers take
        10.
    :param expected_log_ratio: See :class:`WishartLayer`.
    :param stick_the_landing: See :class:`WishartLayer`.
    :param latent_dim: W, the number of latent variables of each datum, which are appended to its
        inputs; see :class:`LatentVariableLayer`. Their inducing inputs start on normal draws, and
        a :class:`NetworkEncoder` gives their posterior.
    :param jitter: Added to the diagonals that are factorised, relative to their means; None for
        GPflow's ``default_jitter()`` when the model is built.
    :param seed: For the starting values.
    :raises ValueError: If an argument is not one of its choices, not a positive integer, does not
        fit the data or needs more memory than there is; or if the data are not two finite matrices
        of one length.
    """
    # Also where no layer has them.
    check_choice(get_args(PosteriorFamily), posterior=posterior)
    check_flags(
        whiten=whiten, expected_log_ratio=expected_log_ratio, stick_the_landing=stick_the_landing
    )

    def layer(place: _Place) -> WishartLayer:
        return WishartLayer(
            place.kernel,
            place.width,
            place.num_inducing,
            posterior,
            whiten,
            expected_log_ratio=expected_log_ratio,
            stick_the_landing=stick_the_landing,
            jitter=jitter,
            seed=place.rng,
        )

    return _build(
        DeepWishartProcess,
        layer,
        data,
        depth,
        width=width,
        num_inducing=num_inducing,
        inducing=inducing,
        kernel=kernel,
        likelihood=likelihood,
        warp=warp,
        output=output,
        num_samples=num_samples,
        latent_dim=latent_dim,
        jitter=jitter,
        seed=seed,
    )


def build_deep_gaussian_process(
    data: RegressionData,
    depth: int = 3,
    *,
    width: int | None = None,
    num_inducing: int = 100,
    inducing: InducingChoice = "subset",
    kernel: str | Sequence[Kernel] = "SquaredExponential",
    likelihood: Likelihood | None = None,
    warp: bool = False,
    output: OutputPosterior | None = None,
    num_samples: int = 2,
    latent_dim: int = 0,
    jitter: float | None = None,
    seed: int = 0,
) -> DeepGaussianProcess:
    """Build the deep Gaussian process with the prior of a deep Wishart process.

    :param depth: Number of GP layers.
    :param width: ν, the number of features of every hidden layer; None for D.

    All else is as for :func:`build_deep_wishart_process`.
    """

    def layer(place: _Place) -> GlobalInducingGramLayer:
        return GlobalInducingGramLayer(
            place.kernel,
            place.width,
            place.num_inducing,
            precision=1.0 / _NOISE_VARIANCE,
            jitter=jitter,
            seed=place.rng,
        )

    return _build(
        DeepGaussianProcess,
        layer,
        data,
        depth,
        width=width,
        num_inducing=num_inducing,
        inducing=inducing,
        kernel=kernel,
        likelihood=likelihood,
        warp=warp,
        output=output,
        num_samples=num_samples,
        latent_dim=latent_dim,
        jitter=jitter,
        seed=seed,
    )


def build_deep_inverse_wishart_process(
    data: RegressionData,
    depth: int = 3,
    *,
    num_inducing: int = 100,
    inducing: InducingChoice = "subset",
    kernel: str | Sequence[Kernel] = "SquaredExponential",
    likelihood: Likelihood | None = None,
    warp: bool = False,
    output: OutputPosterior | None = None,
    num_samples: int = 2,
    expected_log_ratio: bool = True,
    latent_dim: int = 0,
    jitter: float | None = None,
    seed: int = 0,
) -> DeepInverseWishartProcess:
    """Build a deep inverse Wishart process.

    :param depth: Number of kernels: ``depth - 1`` inverse Wishart layers and one output GP. The
        layers' degrees of freedom are learned, so there is no width.
    :param expected_log_ratio: See :class:`InverseWishartLayer`.

    All else is as for :func:`build_deep_wishart_process`.
    """

    check_flags(expected_log_ratio=expected_log_ratio)  # also where no layer has it

    def layer(place: _Place) -> InverseWishartLayer:
        return InverseWishartLayer(
            place.kernel,
            place.num_inducing,
            expected_log_ratio=expected_log_ratio,
            jitter=jitter,
            seed=place.rng,
        )

    return _build(
        DeepInverseWishartProcess,
        layer,
        data,
        depth,
        width=None,
        num_inducing=num_inducing,
        inducing=inducing,
        kernel=kernel,
        likelihood=likelihood,
        warp=warp,
        output=output,
        num_samples=num_samples,
        latent_dim=latent_dim,
        jitter=jitter,
        seed=seed,
    )


def _check_output(output: str, likelihood: Likelihood | None, latent_dim: int) -> None:
    check_choice(get_args(OutputPosterior), output=output)
    if output == "regression":
        if likelihood is not None and not isinstance(likelihood, gpflow.likelihoods.Gaussian):
            raise ValueError(
                "output must be 'pseudo_targets' for a likelihood that is not Gaussian, got "
                f"'regression' and {type(likelihood).__name__}."
            )
        if latent_dim:
            raise ValueError(
                "output must be 'pseudo_targets' for a model with latent variables, got "
                "'regression'."
            )


def _build(
    model_type: type[Model],
    make_layer: Callable[[_Place], GramLayer],
    data: RegressionData,
    depth: int,
    *,
    width: int | None,
    num_inducing: int,
    inducing: InducingChoice,
    kernel: str | Sequence[Kernel],
    likelihood: Likelihood | None,
    warp: bool,
    output: OutputPosterior | None,
    num_samples: int,
    latent_dim: int,
    jitter: float | None,
    seed: int,
) -> Model:
    X, Y = check_pair(data)
    check_integers(at_least=0, latent_dim=latent_dim)
    if not (likelihood is None or isinstance(likelihood, Likelihood)):
        raise ValueError(f"likelihood must be one of GPflow's kind or None, got {likelihood!r}.")
    check_flags(warp=warp)
    if warp and likelihood is not None:
        raise ValueError(
            "warp must be False where a likelihood is given, which may be a WarpedGaussian, got "
            f"True and {type(likelihood).__name__}."
        )
    if output is None:
        output = suitable_output(len(X), likelihood, latent_dim)
    _check_output(output, likelihood, latent_dim)
    num_inputs = X.shape[1] + latent_dim
    named = {} if width is None else {"width": width}
    width = num_inputs if width is None else width
    check_integers(depth=depth, num_inducing=num_inducing, width=width)
    jitter = as_jitter(jitter)  # also where no layer has it
    largest = min(num_inducing, len(X))
    named |= {"depth": depth, "latent_dim": latent_dim, "num_inducing": largest}
    check_memory(depth, largest, max(largest, width, num_inputs), **named)
    rng = as_generator(seed)
    Z, pseudo_observations = initial_inducing(X, Y, num_inducing, inducing, rng)
    if likelihood is None:
        with positive_by_exp():
            # Outputs differ in their noise.
            variance = np.full(Y.shape[1], _NOISE_VARIANCE) if Y.shape[1] > 1 else _NOISE_VARIANCE
            likelihood = (
                WarpedGaussian(SinhArcsinh(Y.shape[1]), variance)
                if warp
                else gpflow.likelihoods.Gaussian(variance)
            )
    check_observations(likelihood, Y)
    pseudo_targets = initial_pseudo_targets(likelihood, pseudo_observations)
    *hidden_kernels, output_kernel = make_kernels(kernel, depth, num_inputs)
    hidden = [make_layer(_Place(below, width, len(Z), rng)) for below in hidden_kernels]
    output_layer: OutputLayer
    if output == "regression":
        noise_variance = 1.0 / initial_precision(likelihood)
        output_layer = RegressionGPLayer(
            output_kernel, len(Z), X, Y, noise_variance=noise_variance, jitter=jitter
        )
    else:
        output_layer = GlobalInducingGPLayer(
            output_kernel,
            pseudo_targets.shape[1],
            pseudo_targets=pseudo_targets,
            precision=initial_precision(likelihood),
        )
    latent_layer = None
    if latent_dim:
        Z = np.concatenate([Z, rng.standard_normal((len(Z), latent_dim))], axis=1)
        encoder = NetworkEncoder(X.shape[1] + Y.shape[1], latent_dim, seed=rng)
        latent_layer = LatentVariableLayer(latent_dim, encoder)
    return model_type(
        [*hidden, output_layer],
        likelihood,
        Z,
        num_data=len(X),
        num_samples=num_samples,
        latent_layer=latent_layer,
    )
