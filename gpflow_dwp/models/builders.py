"""Ready-made models: every default lives here, with its reason."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal

import gpflow
import numpy as np
import numpy.typing as npt
from gpflow.base import RegressionData
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from gpflow_dwp.data import check_data
from gpflow_dwp.layers import GlobalInducingGPLayer, PosteriorFamily, WishartLayer
from gpflow_dwp.models.deep_wishart_process import DeepWishartProcess
from gpflow_dwp.validation import check_integers

__all__ = ["KERNELS", "InducingChoice", "build_deep_wishart_process", "make_kernels"]

KERNELS: dict[str, Callable[..., Kernel]] = {
    kernel.__name__: kernel
    for kernel in (
        gpflow.kernels.ArcCosine,
        gpflow.kernels.Exponential,
        gpflow.kernels.Matern12,
        gpflow.kernels.Matern32,
        gpflow.kernels.Matern52,
        gpflow.kernels.RationalQuadratic,
        gpflow.kernels.SquaredExponential,
    )
}
"""Kernels that can be asked for by name, with relevance determination in the first layer."""

InducingChoice = Literal["subset", "kmeans"]
"""Where inducing inputs start: on random training rows, or on cluster centres."""

# The papers start at a noise standard deviation of e⁻².
_NOISE_VARIANCE = float(np.exp(-4.0))


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
    num_samples: int = 10,
    expected_log_ratio: bool = True,
    stick_the_landing: bool = True,
    jitter: float = 1e-6,
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
    :param width: ν of every Wishart layer; None for D.
    :param num_inducing: M; at most the number of distinct training inputs is used.
    :param inducing: "subset": inducing inputs start on random training rows, pseudo-targets on
        their observations. "kmeans": on cluster centres, with the nearest row's observation.
    :param kernel: A name in :data:`KERNELS`, with one lengthscale per input in the first layer
        and one in all others; or ``depth`` kernels, bottom first.
    :param likelihood: None for a Gaussian one with standard deviation e⁻².
    :param num_samples: S in training.
    :param expected_log_ratio: See :class:`WishartLayer`.
    :param stick_the_landing: See :class:`WishartLayer`.
    :param jitter: See :class:`WishartLayer`.
    :param seed: For the starting values.
    :raises ValueError: If an argument is not one of its choices, not a positive integer, or does
        not fit the data; or if the data are not two finite matrices of one length.
    """
    X, Y = check_data(*data)
    width = X.shape[1] if width is None else width
    check_integers(depth=depth, num_inducing=num_inducing, width=width)
    rng = np.random.default_rng(seed)
    Z, pseudo_observations = _initial_inducing(X, Y, num_inducing, inducing, rng)
    if likelihood is None:
        with _positive_by_exp():
            likelihood = gpflow.likelihoods.Gaussian(variance=_NOISE_VARIANCE)
    pseudo_targets = _initial_pseudo_targets(likelihood, pseudo_observations)
    kernels = make_kernels(kernel, depth, X.shape[1])
    hidden = [
        WishartLayer(
            layer_kernel,
            width,
            len(Z),
            posterior,
            whiten,
            expected_log_ratio=expected_log_ratio,
            stick_the_landing=stick_the_landing,
            jitter=jitter,
            seed=rng,
        )
        for layer_kernel in kernels[:-1]
    ]
    output = GlobalInducingGPLayer(
        kernels[-1],
        pseudo_targets.shape[1],
        pseudo_targets=pseudo_targets,
        precision=_initial_precision(likelihood),
    )
    return DeepWishartProcess(
        [*hidden, output], likelihood, Z, num_data=len(X), num_samples=num_samples
    )


def make_kernels(kernel: str | Sequence[Kernel], depth: int, num_inputs: int) -> list[Kernel]:
    """Make one kernel for each layer.

    :param kernel: A name in :data:`KERNELS`, or ``depth`` kernels.
    :param depth: Number of layers.
    :param num_inputs: D, the number of lengthscales of the first kernel.
    :raises ValueError: If the name is unknown, or the number of kernels is not ``depth``.
    """
    if isinstance(kernel, Kernel):
        raise ValueError(
            f"kernel must be a name or a sequence of depth={depth} kernels, got one kernel, "
            f"{type(kernel).__name__}."
        )
    if not isinstance(kernel, str):
        kernels = list(kernel)
        if len(kernels) != depth:
            raise ValueError(f"kernel must hold depth={depth} kernels, got {len(kernels)}.")
        return kernels
    if kernel not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {kernel!r}.")
    relevances = "weight_variances" if kernel == "ArcCosine" else "lengthscales"
    with _positive_by_exp():
        first = KERNELS[kernel](**{relevances: np.ones(num_inputs)})
        return [first, *(KERNELS[kernel]() for _ in range(depth - 1))]


def _positive_by_exp() -> contextlib.AbstractContextManager[None]:
    """Give new positive parameters a logarithmic scale.

    Adam's steps then change variances and lengthscales by one factor, however large they are; with
    GPflow's default, softplus, large values are slow to reach.
    """
    config = dataclasses.replace(gpflow.config.config(), positive_bijector="exp")
    return gpflow.config.as_context(config)


def _initial_inducing(
    X: npt.NDArray[np.float64],
    Y: npt.NDArray[np.float64],
    num_inducing: int,
    inducing: str,
    rng: np.random.Generator,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    # Coinciding inducing inputs would make their covariance singular.
    _, distinct = np.unique(X, axis=0, return_index=True)
    num_inducing = min(num_inducing, len(distinct))
    if inducing == "subset":
        rows = rng.choice(distinct, num_inducing, replace=False)
        return X[rows].copy(), Y[rows].copy()
    if inducing == "kmeans":
        centres, _ = kmeans2(X[distinct], num_inducing, minit="++", seed=rng)
        return centres, Y[cdist(centres, X).argmin(axis=1)].copy()
    raise ValueError(f"inducing must be subset or kmeans, got {inducing!r}.")


def _initial_precision(likelihood: Likelihood) -> float:
    """Start pseudo-targets as precise as the observations that they are taken from.

    With Gaussian noise that is exact for a single layer with inducing points on the data. From
    e⁻⁴, the published code's start, Adam needs thousands of steps to get there, and the bound of a
    short run is far lower. Where pseudo-targets are guesses, or the noise is a function, e⁻⁴ it is.
    """
    if isinstance(likelihood, gpflow.likelihoods.Gaussian | gpflow.likelihoods.StudentT):
        scale, variance = likelihood.scale, getattr(likelihood, "variance", None)
        if isinstance(scale, gpflow.Parameter):
            return float(scale.numpy()) ** -2
        if isinstance(variance, gpflow.Parameter):
            return 1.0 / float(variance.numpy())
    return float(np.exp(-4.0))


def _initial_pseudo_targets(
    likelihood: Likelihood, observations: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Put observations on the scale of the latent functions, where that scale is known."""
    lik = gpflow.likelihoods
    if isinstance(likelihood, lik.Gaussian | lik.StudentT):
        return observations
    if isinstance(likelihood, lik.Bernoulli):
        return 2.0 * observations - 1.0
    if isinstance(likelihood, lik.Softmax | lik.MultiClass):
        classes = np.arange(likelihood.latent_dim or 1)
        return 2.0 * (observations == classes) - 1.0
    num_outputs = likelihood.latent_dim or observations.shape[1]
    return np.zeros((len(observations), num_outputs))
