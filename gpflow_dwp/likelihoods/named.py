"""Likelihoods that can be asked for by name, and the one of labels."""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from gpflow.likelihoods import Bernoulli, Gaussian, Likelihood, Softmax

from gpflow_dwp.likelihoods.heteroskedastic_gaussian import HeteroskedasticGaussian
from gpflow_dwp.likelihoods.sinh_arcsinh import SinhArcsinh
from gpflow_dwp.likelihoods.warped_gaussian import WarpedGaussian
from gpflow_dwp.likelihoods.warped_student_t import WarpedStudentT
from gpflow_dwp.validation import check_choice, is_known

__all__ = [
    "MOST_NUGGET",
    "LikelihoodName",
    "is_noise_free",
    "likelihood_by_name",
    "likelihood_of_labels",
    "name_of_likelihood",
    "warp_of_range",
]

_MARGIN = 0.25

LikelihoodName = Literal[
    "gaussian", "noise_free", "warped", "student_t", "warped_student_t", "heteroskedastic"
]
"""How observations scatter around functions: Gaussian noise, none, as of a simulator, noise of a
function of the observations that is learned ("warped"), with tails that are learned ("student_t"),
both, or with a variance that is a function of the inputs."""

# What a nugget may be at least, and what that may be for a likelihood to be one without noise.
_LEAST_NUGGET, _MOST_BOUND = 1e-10, 1e-8
MOST_NUGGET = 1e-4
"""The most that may be called rounding where there is no noise, by the observations' variance."""


def likelihood_by_name(
    name: LikelihoodName,
    num_outputs: int,
    variance: float,
    observations: npt.NDArray[np.float64] | None = None,
) -> Likelihood:
    """Make a likelihood in which each output has a noise of its own.

    :param name: Which one.
    :param num_outputs: Number of output columns, P.
    :param variance: Where the variance of the noise starts.
    :param observations: [N, P], of which NaN are missing: see :func:`warp_of_range`. None for one
        that bends everywhere.
    :raises ValueError: If there is no likelihood of that name.
    """
    check_choice(get_args(LikelihoodName), likelihood=name)
    if name == "heteroskedastic":
        return HeteroskedasticGaussian(num_outputs, math.sqrt(variance))
    start = np.full(num_outputs, variance) if num_outputs > 1 else variance
    bound = _LEAST_NUGGET if name == "noise_free" else None
    likelihood = Gaussian(start, variance_lower_bound=bound)
    if name.startswith("warped"):
        warp = SinhArcsinh(num_outputs) if observations is None else warp_of_range(observations)
        likelihood = WarpedGaussian(warp, start)
    return WarpedStudentT.of(likelihood) if name.endswith("student_t") else likelihood


def warp_of_range(observations: npt.NDArray[np.float64]) -> SinhArcsinh:
    """Return a warp that is straight beyond the observations and a quarter of their range.

    :param observations: [N, P], of which NaN are missing.
    """
    low, high = np.nanmin(observations, axis=0), np.nanmax(observations, axis=0)
    margin = _MARGIN * (high - low)
    return SinhArcsinh(observations.shape[1], lower=low - margin, upper=high + margin)


def name_of_likelihood(likelihood: Likelihood) -> str:
    """Return the name by which a likelihood can be asked for; of others that of their class."""
    if isinstance(likelihood, HeteroskedasticGaussian):
        return "heteroskedastic"
    if is_known(likelihood, WarpedGaussian):
        warp = likelihood.warp
        bends = not isinstance(warp, SinhArcsinh) or bool(warp.trainable_parameters)
        if not isinstance(likelihood, WarpedStudentT):
            return "warped"
        return "warped_student_t" if bends else "student_t"
    if is_noise_free(likelihood):
        return "noise_free"
    return "gaussian" if is_known(likelihood, Gaussian) else type(likelihood).__name__


def is_noise_free(likelihood: Likelihood) -> bool:
    """Whether a likelihood is the one of the name "noise_free", by how small its noise may be."""
    is_gaussian = type(likelihood) in (Gaussian, WarpedGaussian)
    return is_gaussian and likelihood.variance_lower_bound <= _MOST_BOUND


def likelihood_of_labels(num_classes: int) -> Likelihood:
    """Return a likelihood of class indices: Bernoulli for two classes, softmax for more.

    :param num_classes: Number of classes, C, at least 2; the softmax has as many latent functions.
    """
    return Bernoulli() if num_classes == 2 else Softmax(num_classes)
