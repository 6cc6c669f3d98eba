"""What the posterior of a model's output layer comes from."""

from __future__ import annotations

from typing import Literal

import gpflow
from gpflow.likelihoods import Likelihood

from gpflow_dwp.likelihoods import Noise

__all__ = ["OutputPosterior", "suitable_output"]

OutputPosterior = Literal["pseudo_targets", "regression"]
"""What the output layer's posterior comes from: pseudo-targets that are learned, or all data."""

_LARGEST_REGRESSION = 2_000


def suitable_output(
    num_data: int,
    likelihood: Likelihood | None = None,
    latent_dim: int = 0,
    batch_size: int | None = None,
    noise: Noise | Literal["auto"] = "gaussian",
) -> OutputPosterior:
    """Return "regression" where it can be had and each step may carry all data, up to 2,000 rows.

    Not for noise that is a function of the inputs: the regression has one variance, where learned
    pseudo-targets have precisions of their own.

    :param num_data: Number of training rows, N.
    :param likelihood: None for one that ``noise`` says.
    :param latent_dim: Number of latent variables of each row, W.
    :param batch_size: Rows of a minibatch; None for all.
    :param noise: As the builders take it, or "auto" for one of those that are the same everywhere.
    """
    whole = batch_size is None and num_data <= _LARGEST_REGRESSION
    has_one_noise = noise != "heteroskedastic" if likelihood is None else _has_one_noise(likelihood)
    suits = whole and not latent_dim and has_one_noise
    return "regression" if suits else "pseudo_targets"


def _has_one_noise(likelihood: Likelihood) -> bool:
    """Whether a likelihood is Gaussian, with noise that is no function of the inputs."""
    return isinstance(likelihood, gpflow.likelihoods.Gaussian) and any(
        isinstance(noise, gpflow.Parameter) for noise in (likelihood.variance, likelihood.scale)
    )
