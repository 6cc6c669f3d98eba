"""A kernel for each output: Gaussian processes of several outputs, each fitted by itself."""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from collections.abc import Sequence
from typing import cast

import numpy as np
from gpflow.kernels import SeparateIndependent
from gpflow.likelihoods import Gaussian

from gpflow_dwp.base import Array, TrainingData
from gpflow_dwp.gaussian_process import fit_gaussian_process
from gpflow_dwp.likelihoods.named import (
    LikelihoodName,
    is_noise_free,
    likelihood_by_name,
    name_of_likelihood,
)
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models import DeepKernelProcess, DeepWishartProcess
from gpflow_dwp.models.named_kernels import SUMS, positive_by_exp
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.candidates import SINGLE
from gpflow_dwp.selection.single_layers import SingleLayers
from gpflow_dwp.selection.starts import Start, best_start
from gpflow_dwp.selection.trainer import Trainer, fewer_inducing_inputs, history_of_fit
from gpflow_dwp.training import TrainingHistory
from gpflow_dwp.validation import as_weighted, with_weights

__all__ = [
    "criterion",
    "fit_outputs",
    "joined",
    "model_of_outputs",
    "of_output",
    "single_layers_of",
    "starts_of_outputs",
]


def model_of_outputs(
    trainer: Trainer, plain: Sequence[Start], shared: Start
) -> tuple[DeepWishartProcess, TrainingHistory, Start]:
    """Fit a single layer with a kernel for each output to all rows.

    Parameters are those of :func:`starts_of_outputs`.
    """
    start = joined(trainer, starts_of_outputs(trainer, plain, shared)[1])
    model, weights = trainer.build(start, SINGLE), trainer.weights_of_kernels
    counts = ~np.isnan(trainer.Y)
    if weights is not None:
        counts &= weights[:, None] > 0.0
    data = with_weights(trainer.X, trainer.Y, weights)
    most = 0 if start.num_data == counts.sum() else policy.ITERATIONS
    return model, fit_outputs(model, data, trainer.steps, most), start


def starts_of_outputs(
    trainer: Trainer, plain: Sequence[Start], shared: Start
) -> tuple[list[Start], list[Start]]:
    """Fit a process to each output, of the rows in which it was observed.

    Their kernels are of the kind of the best one that outputs share, or sums that start from it
    where that is a sum.

    :param plain: Processes with one kernel for all outputs and Gaussian noise, best first.
    :param shared: The best one of all likelihoods.
    :return: Those with Gaussian noise or none; and the same, or all with a warp if the one that is
        shared has one and it gains evidence.
    """
    best = plain[0]
    names = [best.name] if trainer.choice.kernel == best.name else []
    names = names or [start.name for start in plain if start.name not in SUMS][:1]
    starts, warped = [], []
    for index in range(trainer.Y.shape[1]):
        singles = single_layers_of(trainer, index)
        tried = singles.plain(names)
        if best.name in SUMS and best.name not in names:
            tried.append(singles.sum_from(best))
        starts.append(best_start(tried))
        if warp_of(shared.likelihood) is not None:
            warped.append(singles.with_likelihood(starts[-1], "warped"))
    is_ahead = sum(each.evidence for each in warped) > sum(each.evidence for each in starts)
    return starts, warped if warped and is_ahead else starts


def single_layers_of(trainer: Trainer, index: int) -> SingleLayers:
    """What fits single layers to an output, of the rows in which it was observed."""
    seen, weights = ~np.isnan(trainer.Y[:, index]), trainer.weights_of_kernels
    choice, weights = trainer.choice, None if weights is None else weights[seen]
    if choice.row_means is not None:
        choice = dataclasses.replace(choice, row_means=of_output(choice.row_means, index))
    X, Y, steps = trainer.X[seen], trainer.Y[seen, index, None], trainer.steps[index, None]
    return SingleLayers(X, Y, weights, steps, choice, trainer.seed)


def joined(trainer: Trainer, starts: Sequence[Start]) -> Start:
    """One process of those of all outputs, whose likelihoods are of one kind.

    :return: With GPflow's ``SeparateIndependent`` as its kernel, of as many data as numbers were
        observed.
    """
    first = starts[0].likelihood
    name: LikelihoodName = "noise_free" if is_noise_free(first) else "gaussian"
    if warp_of(first) is not None:
        name = "warped"
    likelihood = trainer.choice.row_means
    likelihood = likelihood or likelihood_by_name(name, len(starts), 0.1, trainer.Y)
    likelihood = positive_by_exp(copy.deepcopy(likelihood))
    for index, start in enumerate(starts):
        _put(likelihood, index, start.likelihood)
    return Start(
        SeparateIndependent.__name__,
        SeparateIndependent([start.make_kernel() for start in starts]),
        likelihood,
        elbo=sum(start.elbo for start in starts),
        evidence=sum(start.evidence for start in starts),
        num_data=sum(start.num_data for start in starts),
    )


def criterion(model: DeepWishartProcess) -> float:
    """What a single layer's parameters cost by Schwarz's criterion, in nats: half of log N each."""
    parts = model.output_layer.kernel, model.likelihood
    count = sum(int(np.size(each)) for part in parts for each in part.trainable_parameters)
    return 0.5 * count * math.log(model.num_data)


def fit_outputs(
    model: DeepKernelProcess, data: TrainingData, steps: Array, max_iterations: int
) -> TrainingHistory:
    """Fit kernel, noise and warp of each output by L-BFGS, from where they are.

    :param model: A single layer, a regression with a kernel for each output.
    :param data: What it is a regression on.
    :param steps: To which each column was recorded, [P].
    :param max_iterations: Most iterations for each output.
    """
    began, layer = time.perf_counter(), model.output_layer
    X, Y, weights = as_weighted(data)
    X, Y = np.asarray(X), np.asarray(Y)
    weights = np.ones(len(X)) if weights is None else np.asarray(weights)
    Z, traces = fewer_inducing_inputs(model, X), []
    for index, kernel in enumerate(layer.kernels):
        seen, likelihood = ~np.isnan(Y[:, index]), of_output(model.likelihood, index)
        fitted = fit_gaussian_process(
            (X[seen], Y[seen, index, None], weights[seen]),
            kernel,
            likelihood,
            Z,
            steps=steps[index, None],
            jitter=layer.jitter,
            max_iterations=max_iterations,
        )
        _put(model.likelihood, index, likelihood)
        traces.append(fitted.trace)
    layer.noise_variance.assign(model.likelihood.variance)
    longest = max(map(len, traces))
    trace = np.sum([np.pad(each, (0, longest - len(each)), "edge") for each in traces], axis=0)
    return history_of_fit(trace, len(X), began)


def of_output(likelihood: Gaussian, index: int) -> Gaussian:
    """The likelihood of one output."""
    if isinstance(likelihood, RowMeansGaussian):
        variance = np.asarray(likelihood.variance)[index]
        return positive_by_exp(likelihood.starting_at(variance, slice(index, index + 1)))
    name = cast(LikelihoodName, name_of_likelihood(likelihood))
    one: Gaussian = positive_by_exp(likelihood_by_name(name, 1, 0.1))
    for part, whole in zip(one.parameters, likelihood.parameters, strict=True):
        part.assign(np.reshape(whole.numpy()[index], part.shape))
    return one


def _put(likelihood: Gaussian, index: int, one: Gaussian) -> None:
    """Give one output of a likelihood the values of another."""
    for whole, part in zip(likelihood.parameters, one.parameters, strict=True):
        values = whole.numpy().copy()
        values[index] = np.squeeze(part.numpy())
        whole.assign(values)
