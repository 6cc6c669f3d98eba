"""Where models start: Gaussian processes, and what is taken over from them."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow import Parameter, default_float, default_jitter
from gpflow.kernels import Kernel, MultioutputKernel
from gpflow.likelihoods import Gaussian, Likelihood

from gpflow_dwp.base import Array
from gpflow_dwp.gaussian_process.covariances import CLOSED_FORMS
from gpflow_dwp.kernels.of_inputs import additive_values
from gpflow_dwp.kernels.values import Part, Parts, as_kernel, parts_of
from gpflow_dwp.likelihoods import WarpedGaussian, WarpedStudentT
from gpflow_dwp.likelihoods.named import is_noise_free, warp_of_range
from gpflow_dwp.models.named_kernels import KERNELS, SUMS, make_kernels, positive_by_exp
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.scores import RowScores, no_worse
from gpflow_dwp.validation import is_known

__all__ = [
    "Start",
    "best_start",
    "heavy_noise",
    "initial_kernel",
    "noise_variance",
    "num_lengthscales",
    "predicts",
    "single_layer_jitter",
    "warped_noise",
    "with_one_scale",
    "with_own_noise",
]


class Start(NamedTuple):
    """Where models start: at a Gaussian process that was fitted to some rows, or to all.

    :param kernel: Its values, or GPflow's kernel where it has no closed form.
    :param elbo: Its evidence, or a bound of it, in nats.
    :param evidence: The same, less what parameters count for.
    :param scores: Of each row, predicted from all others.
    :param num_data: Rows that it was fitted to.
    """

    name: str
    kernel: Kernel | Parts
    likelihood: Likelihood
    elbo: float = -math.inf
    evidence: float = -math.inf
    trace: Array | None = None
    precisions: Array | None = None
    scores: RowScores | None = None
    num_data: int = 0

    def make_kernel(self) -> Kernel:
        """Make GPflow's kernel of its values."""
        if isinstance(self.kernel, Kernel):
            return copy.deepcopy(self.kernel)
        return positive_by_exp(as_kernel(self.kernel))

    def apart(self, **changes: Any) -> Start:
        """A copy whose values change by themselves, with other fields."""
        kernel, likelihood = copy.deepcopy((self.kernel, self.likelihood))
        return self._replace(**{"kernel": kernel, "likelihood": likelihood, **changes})

    @property
    def is_gaussian(self) -> bool:
        """Whether a Gaussian process with this noise is a regression."""
        return is_known(self.likelihood, Gaussian)


def initial_kernel(
    name: str, num_inputs: int, variance: float = 1.0, columns: Sequence[int] | None = None
) -> Kernel | Parts:
    """Return the kernel of a name in :data:`KERNELS` that a single layer starts with.

    :param columns: Inputs of which an additive kernel has a function each; None for all.
    :return: Its values, or where there is no closed form of it GPflow's kernel.
    """
    # About the distance between two standardised rows.
    scales = np.full(num_inputs, math.sqrt(2.0 * num_inputs))
    if name in SUMS:
        parts = additive_values(SUMS[name], scales, columns)
        return tuple(part._replace(variance=variance * part.variance) for part in parts)
    kind = KERNELS[name]
    if isinstance(kind, type) and kind in CLOSED_FORMS:
        return (Part(kind, variance, scales),)
    [kernel] = make_kernels(name, 1, num_inputs)
    if hasattr(kernel, "lengthscales"):
        kernel.lengthscales.assign(scales)
    kernel.variance.assign(variance)
    return kernel


def single_layer_jitter(likelihood: Likelihood) -> float:
    """Return the relative jitter of a single layer's covariance.

    It bounds the noise that the layer can have from below, so it is a hundredth of the usual one
    where numbers are as exact as that, and as little as they allow where there is no noise.
    """
    if default_float() != np.float64:
        return float(default_jitter())
    return float(default_jitter()) * (1e-6 if is_noise_free(likelihood) else 1e-2)


def with_own_noise(likelihood: Likelihood, num_outputs: int) -> Likelihood:
    """A copy, in which every output has a noise of its own, if there is any."""
    likelihood = copy.deepcopy(likelihood)
    has_one = is_known(likelihood, Gaussian) and not np.ndim(likelihood.variance.numpy())
    if not has_one or num_outputs == 1 or is_noise_free(likelihood):
        return likelihood
    given, variances = likelihood.variance, np.full(num_outputs, noise_variance(likelihood))
    if given.trainable:
        likelihood.variance = Parameter(variances, transform=given.transform)
    return positive_by_exp(likelihood)


def noise_variance(likelihood: Likelihood) -> float:
    """The variance of a likelihood's noise, where others can start."""
    # At its bound, where fits of data without noise end, no other parameter can start.
    floor = 2.0 * likelihood.variance_lower_bound
    return max(float(tf.convert_to_tensor(likelihood.variance)), floor)


def warped_noise(start: Start, Y: Array) -> Gaussian:
    """Noise of a process in a function that is to be learned."""
    plain = start.likelihood
    variance, least = noise_variance(plain), plain.variance_lower_bound
    likelihood = WarpedGaussian(warp_of_range(Y), variance, variance_lower_bound=least)
    return positive_by_exp(likelihood)


def heavy_noise(start: Start) -> Gaussian:
    """Student's noise of a process."""
    return positive_by_exp(WarpedStudentT.of(start.likelihood))


def num_lengthscales(kernel: Kernel | Parts) -> int:
    """How many lengthscales a kernel and its parts have; of several the one with most."""
    if isinstance(kernel, MultioutputKernel):
        return max(map(num_lengthscales, kernel.latent_kernels))
    parts = parts_of(kernel) if isinstance(kernel, Kernel) else kernel
    return sum(int(np.size(getattr(part, "lengthscales", ()))) for part in parts)


def best_start(starts: Iterable[Start]) -> Start:
    """The one with the highest evidence."""
    return max(starts, key=lambda start: start.evidence)


def predicts(
    other: Start, best: Start, plain: Start, *, errors: float = 1.0, least: float = 0.0
) -> bool:
    """Whether a process is sane, and no worse than the plain one where it is of use.

    :param errors: Its gain has to be larger than so many standard errors, if it is not sure.
    :param least: And larger than this, in nats a row.
    """
    if other.scores is None or best.scores is None or plain.scores is None:
        return False
    gain = other.scores.log_density - best.scores.log_density
    is_sure = other.evidence > best.evidence + policy.SURE_NATS
    return (
        other.scores.is_sane
        and no_worse(other.scores.crps, plain.scores.crps)
        and gain.mean() > least
        and bool(is_sure or gain.mean() > errors * gain.std() / math.sqrt(len(gain)))
    )


def with_one_scale(start: Start) -> Parts:
    """Its kernel, with one lengthscale of all inputs jointly."""
    joint, *others = start.kernel
    scale = np.exp(np.mean(np.log(joint.lengthscales)))
    return joint._replace(lengthscales=scale), *others
