"""What the builders share: from data and settings to the parts of a model, and where they start."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import gpflow
import numpy as np
from gpflow.functions import MeanFunction
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import (
    Kernel,
    LinearCoregionalization,
    MultioutputKernel,
    SeparateIndependent,
)
from gpflow.likelihoods import Likelihood
from gpflow.utilities import to_default_float
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from gpflow_dwp.base import Array, TrainingData
from gpflow_dwp.layers import (
    GlobalInducingGPLayer,
    GramLayer,
    NearestNeighbourGPLayer,
    OutputLayer,
    RegressionGPLayer,
)
from gpflow_dwp.layers.global_inducing import as_inducing_points
from gpflow_dwp.likelihoods import HeteroskedasticGaussian, WarpedStudentT
from gpflow_dwp.likelihoods.named import likelihood_by_name
from gpflow_dwp.likelihoods.observed import observed
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.linalg import as_jitter
from gpflow_dwp.models.architecture import Architecture, OutputPosterior
from gpflow_dwp.models.data_checks import check_mean_function, check_observations
from gpflow_dwp.models.deep_kernel_process import DeepKernelProcess
from gpflow_dwp.models.named_kernels import make_kernels, positive_by_exp
from gpflow_dwp.random import as_generator
from gpflow_dwp.validation import (
    as_weighted,
    check_arrays,
    check_integers,
    check_memory,
    check_process,
    check_weights,
    is_known,
)

__all__ = ["NOISE_VARIANCE", "assemble", "initial_inducing", "suitable_output"]

Model = TypeVar("Model", bound=DeepKernelProcess)

# At a noise standard deviation of e⁻² the published code starts; the papers do not say.
NOISE_VARIANCE = float(np.exp(-4.0))
_LARGEST_REGRESSION = 2_000


def assemble(
    model_type: type[Model],
    make_layer: Callable[..., GramLayer],
    data: TrainingData,
    depth: int,
    architecture: Architecture,
    *,
    width: int | None,
) -> Model:
    """Build a model of hidden layers of one kind; all else as for the builders.

    :param make_layer: Takes the layer's kernel, width and number of inducing points, and by name
        ``jitter`` and ``seed``.
    """
    of_papers = architecture.protocol == "papers"
    num_samples, num_inducing = architecture.num_samples, architecture.num_inducing
    if num_samples is None:
        num_samples = 10 if of_papers else 2
    likelihood: Any = architecture.likelihood  # a likelihood, once it has been made
    kernel, mean_function = architecture.kernel, architecture.mean_function
    check_process()
    X, Y, weights = as_weighted(data)
    X, Y = check_arrays(X, Y, may_miss=True)
    if not isinstance(likelihood, Likelihood):
        likelihood = positive_by_exp(likelihood_by_name(likelihood, Y.shape[1], NOISE_VARIANCE, Y))
    reason = _against_regression(Y, likelihood, kernel)
    output = architecture.output
    if output is None:
        is_learned = of_papers or reason
        output = "pseudo_targets" if is_learned else suitable_output(len(X), likelihood)
    if output != "pseudo_targets" and reason:
        raise ValueError(f"output must be 'pseudo_targets' {reason}, got {output!r}.")
    num_inputs = X.shape[1]
    named = {} if width is None else {"width": width}
    width = num_inputs if width is None else width
    check_integers(depth=depth, width=width)
    jitter = as_jitter(architecture.jitter)  # also where no layer has it
    largest = min(num_inducing, len(X))
    named |= {"depth": depth, "num_inducing": largest}
    check_memory(depth, largest, max(largest, width, num_inputs), **named)
    if weights is not None:
        weights = check_weights(weights, len(X))
    rng = as_generator(architecture.seed)
    Z, pseudo_observations = initial_inducing(X, Y, num_inducing, architecture.inducing, rng)
    check_observations(likelihood, Y)
    # The papers' first kernel is one of X Xᵀ / ν₀, ours of X.
    first_lengthscale = np.sqrt(num_inputs) if of_papers else 1.0
    *hidden_kernels, output_kernel = make_kernels(kernel, depth, num_inputs, first_lengthscale)
    hidden = [make_layer(each, width, len(Z), jitter=jitter, seed=rng) for each in hidden_kernels]
    output_layer: OutputLayer
    if output != "pseudo_targets":
        of_rows: dict[str, Any] = {
            "noise_variance": 1.0 / observed(likelihood).precision(),
            "weights": weights,
            "precisions": np.ones(len(X)) if isinstance(likelihood, WarpedStudentT) else None,
            "mean_function": mean_function,
        }
        if output == "regression":
            output_layer = RegressionGPLayer(output_kernel, len(Z), X, Y, jitter=jitter, **of_rows)
        else:
            output_layer = NearestNeighbourGPLayer(output_kernel, len(Z), X, Y, **of_rows)
        if isinstance(likelihood, RowMeansGaussian):
            gpflow.set_trainable(output_layer.noise_variance, not likelihood.is_known)
    else:
        output_layer = _learned_output_layer(
            output_kernel, likelihood, Z, pseudo_observations, mean_function
        )
    model = model_type(
        [*hidden, output_layer], likelihood, Z, num_data=len(X), num_samples=num_samples
    )
    model.protocol = architecture.protocol
    return model


def suitable_output(
    num_data: int, likelihood: Likelihood, batch_size: int | None = None
) -> OutputPosterior:
    """Return "regression" where it can be had and each step may carry all data, up to 2,000 rows.

    Not for noise that is a function of the inputs: the regression has one variance, where learned
    pseudo-targets have precisions of their own.

    :param num_data: Number of training rows, N.
    :param batch_size: Rows of a minibatch; None for all.
    """
    whole = batch_size is None and num_data <= _LARGEST_REGRESSION
    has_one_noise = is_known(likelihood, gpflow.likelihoods.Gaussian) and any(
        isinstance(given, gpflow.Parameter) for given in (likelihood.variance, likelihood.scale)
    )
    return "regression" if whole and has_one_noise else "pseudo_targets"


def _learned_output_layer(
    kernel: Kernel,
    likelihood: Likelihood,
    Z: Array,
    pseudo_observations: Array,
    mean_function: MeanFunction | None,
) -> GlobalInducingGPLayer:
    """An output layer whose functions start at such observations at the inducing points, [M, P]."""
    pseudo_targets = observed(likelihood).functions(pseudo_observations)
    num_outputs, has_own = pseudo_targets.shape[1], is_known(likelihood, HeteroskedasticGaussian)
    if has_own and not isinstance(kernel, MultioutputKernel):
        # Where there is little noise observations tell much of the function, not of the noise.
        kernels = [kernel, copy.deepcopy(kernel)]
        kernel = SeparateIndependent([each for each in kernels for _ in pseudo_observations.T])
    if mean_function is not None:
        check_mean_function(mean_function, Z.shape[1], num_outputs)
        pseudo_targets = pseudo_targets - np.asarray(mean_function(to_default_float(Z)))
    if isinstance(kernel, LinearCoregionalization):
        pseudo_targets = pseudo_targets @ np.linalg.pinv(kernel.W.numpy()).T
    return GlobalInducingGPLayer(
        kernel,
        num_outputs,
        pseudo_targets=pseudo_targets,
        precision=observed(likelihood).precision(),
        mean_function=mean_function,
        has_own_precisions=has_own,
    )


def _against_regression(
    Y: Array, likelihood: Likelihood, kernel: str | Kernel | Sequence[str | Kernel]
) -> str:
    """Why the output cannot be a regression on the data; "" where it can."""
    if not is_known(likelihood, gpflow.likelihoods.Gaussian):
        return f"for a likelihood that is not Gaussian ({type(likelihood).__name__})"
    kernels = kernel if isinstance(kernel, Sequence) else [kernel]
    if any(isinstance(each, LinearCoregionalization) for each in kernels):
        return "where outputs are mixtures of functions"
    if np.isnan(Y).any() and not isinstance(kernels[-1], SeparateIndependent):
        return "where observations are missing and outputs share a kernel"
    return ""


def initial_inducing(
    X: Array,
    Y: Array,
    num_inducing: int,
    inducing: str | InducingPoints | Array,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Choose inducing inputs, [M, D], and observations for them, [M, P]."""
    Y = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
    if not isinstance(inducing, str):
        Z = as_inducing_points(inducing, "inducing").Z.numpy()
        if Z.shape[1] != X.shape[1]:
            raise ValueError(
                f"inducing must have {X.shape[1]} columns, as X has, got shape {list(Z.shape)}."
            )
        return Z, _nearest(Z, X, Y)
    # Coinciding inducing inputs would make their covariance singular.
    _, distinct = np.unique(X, axis=0, return_index=True)
    num_inducing = min(num_inducing, len(distinct))
    if inducing == "subset":
        rows = rng.choice(distinct, num_inducing, replace=False)
        return X[rows].copy(), Y[rows].copy()
    if inducing == "kmeans":
        centres, _ = kmeans2(X[distinct], num_inducing, minit="++", seed=rng)
        return centres, _nearest(centres, X, Y)
    raise ValueError(f"inducing must be subset, kmeans or a matrix, got {inducing!r}.")


def _nearest(points: Array, X: Array, Y: Array) -> Array:
    """The observation of the row that is nearest to each point."""
    return Y[cdist(points, X).argmin(axis=1)].copy()
