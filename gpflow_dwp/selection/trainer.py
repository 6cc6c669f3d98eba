"""Models of some data, built and trained in the ways that a selection needs."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from gpflow.base import RegressionData
from gpflow.kernels import SeparateIndependent
from gpflow.likelihoods import Likelihood

from gpflow_dwp.base import Array, TrainingData
from gpflow_dwp.gaussian_process import fit_gaussian_process
from gpflow_dwp.kernels.values import parts_of
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods import HeteroskedasticGaussian
from gpflow_dwp.likelihoods.named import is_noise_free
from gpflow_dwp.likelihoods.observed import observed
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.models import DeepKernelProcess, DeepWishartProcess, build_deep_wishart_process
from gpflow_dwp.models.assembly import suitable_output
from gpflow_dwp.models.named_kernels import make_kernels
from gpflow_dwp.random import random_order
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.candidates import Candidate
from gpflow_dwp.selection.choice import Choice
from gpflow_dwp.selection.deepening import make_nearly_linear, start_at
from gpflow_dwp.selection.observations import weights_of_evidence
from gpflow_dwp.selection.starts import Start, single_layer_jitter, with_own_noise
from gpflow_dwp.training import PROTOCOLS, Callback, TrainingHistory
from gpflow_dwp.training.early_stopping import fit_with_held_out
from gpflow_dwp.validation import with_weights

__all__ = ["Trainer", "fewer_inducing_inputs", "history_of_fit", "rows_of_batches"]

# Inference in a single layer of more rows than those of exact inference is sparse, with this
# product of rows and squared inducing points.
_SPARSE_WORK = 2.5e8
_INDUCING = (100, 500)
_INDUCING_OF_BATCHES = 200
# Pseudo-targets learn as fast from minibatches, and a single layer of them in half the steps.
_ROWS_OF_LABELS = 500
_DRAWS_FOR_BOUND = 20
# Outputs of which each may have a kernel: of more it would take too long.
_MOST_OUTPUTS = 10
# At once, and in all.
_ROWS_FOR_BOUND, _MOST_ROWS = 2_000, 20_000


@dataclasses.dataclass
class Trainer:
    """Builds models of the data from fitted single layers, and trains them.

    Of the choice all but "auto" is settled; ``steps`` are what observations are recorded to.
    """

    X: Array
    Y: Array
    weights: Array | None
    steps: Array
    choice: Choice
    seed: int
    progress: bool
    validation_data: RegressionData | None

    def rows(self, index: slice | npt.NDArray[np.int64] = slice(None)) -> TrainingData:
        """Some of the data, or all."""
        weights = None if self.weights is None else self.weights[index]
        return with_weights(self.X[index], self.Y[index], weights)

    @functools.cached_property
    def weights_of_kernels(self) -> Array | None:
        """How often each row counts where kernel and noise of a single layer are fitted, [N]."""
        if self.choice.row_means is not None:
            return self.weights
        return weights_of_evidence(self.X, self.Y, self.steps, self.weights)

    @functools.cached_property
    def has_missing(self) -> bool:
        """Whether observations are missing."""
        return bool(np.isnan(self.Y).any())

    @property
    def may_have_own_kernels(self) -> bool:
        """Whether each output may have a kernel: of two to ten, with Gaussian noise or none."""
        choice, counts = self.choice, np.sum(~np.isnan(self.Y), axis=0)
        share = min(1.0, policy.EXACT_ROWS / len(self.X))
        return bool(
            1 < len(counts) <= _MOST_OUTPUTS
            and share * counts.min() >= min(len(self.X), policy.FEWEST_ROWS)
            and choice.output in (None, "regression")
            and choice.batch_size is None
            and choice.likelihood in ("auto", "gaussian", "noise_free", "warped")
        )

    def build(self, start: Start, candidate: Candidate) -> DeepWishartProcess:
        """Build a model with the first kernel and the likelihood of a single layer."""
        (num_data, num_inputs), depth = self.X.shape, candidate.depth
        above = candidate.kernels[1:] or [start.name] * (depth - 1)
        kernels = make_kernels([start.make_kernel(), *above], depth, num_inputs)
        parts = parts_of(kernels[0])
        if depth > 1:  # The scale of the functions is that of the last layer.
            scale = parts[0].variance
            if len(parts) > 1:
                scale = np.mean(kernels[0](self.X[:_ROWS_FOR_BOUND], full_cov=False))
            kernels[-1].variance.assign(scale)
            for part in parts:
                part.variance.assign(part.variance / scale)
        if start.is_gaussian:  # Labels gain nothing by it.
            for kernel in kernels[:-1]:
                make_nearly_linear(kernel)
        num_inducing = self.choice.num_inducing
        if num_inducing == "auto":
            num_inducing = self._num_inducing(start, depth)
        output, is_own = self.choice.output, start.name == SeparateIndependent.__name__
        if self.has_missing and depth > 1 and self.may_have_own_kernels:
            copies = [copy.deepcopy(kernels[-1]) for _ in self.Y.T]
            kernels[-1], is_own = SeparateIndependent(copies), True
        if output is None and self.has_missing and not is_own:
            output = "pseudo_targets"
        if output is None and depth == 1 and start.is_gaussian:
            output = "regression"  # It is fitted to all rows as fast as to some.
        if output is None:
            output = suitable_output(num_data, start.likelihood, self.choice.batch_size)
        likelihood = with_own_noise(start.likelihood, self.Y.shape[1])
        if depth > 1 and start.is_gaussian and likelihood.variance.trainable:
            likelihood.variance.assign(np.maximum(likelihood.variance, policy.LEAST_NOISE))
        of_models = self.choice.of_models
        of_models["width"] = candidate.width or self.choice.width
        of_models["posterior"] = candidate.posterior or self.choice.posterior
        jitter = None
        if output == "regression" and depth == 1:
            jitter = single_layer_jitter(likelihood)
        model = build_deep_wishart_process(
            self.rows(),
            depth,
            num_inducing=num_inducing,
            kernel=kernels,
            likelihood=likelihood,
            output=output,
            jitter=jitter,
            seed=self.seed,
            **of_models,
        )
        layer = model.output_layer
        if isinstance(layer, RegressionGPLayer) and layer.precisions is not None:
            layer.precisions.assign(start.precisions)
        if candidate.layer is None:
            return model
        layers = [*map(candidate.layer, model.hidden_layers), layer]
        points = model.inducing_variable
        return DeepWishartProcess(layers, likelihood, points, num_data, model.num_samples)

    def deepened(
        self, start: Start, candidate: Candidate, shallower: DeepWishartProcess
    ) -> DeepWishartProcess:
        """Build a model that is a layer deeper than a trained one, and start where that ended."""
        model = self.build(start, candidate)
        if shallower.hidden_layers:
            start_at(model, shallower)
        return model

    def heteroskedastic(self, start: Start) -> Start:
        """The same process, with noise that is a function of the inputs."""
        variance = max(float(np.max(start.likelihood.variance.numpy())), policy.LEAST_NOISE)
        likelihood = HeteroskedasticGaussian(self.Y.shape[1], math.sqrt(variance))
        return start._replace(likelihood=likelihood)

    def fit_single_layer(self, model: DeepWishartProcess, start: Start) -> TrainingHistory:
        """Fit a regression with a single layer by L-BFGS, where all rows have not been fitted."""
        began, num_outputs = time.perf_counter(), self.Y.shape[1]
        layer, likelihood = model.output_layer, model.likelihood
        has_own_noise = num_outputs > 1 and not is_noise_free(likelihood)
        if has_own_noise:  # It is fitted with one noise for all.
            likelihood = copy.deepcopy(start.likelihood)
        Z, weights = fewer_inducing_inputs(model, self.X), self.weights_of_kernels
        num_counted = len(self.X) if weights is None else np.count_nonzero(weights)
        is_fitted = Z is None and start.num_data == num_counted
        fit_to = functools.partial(
            fit_gaussian_process,
            kernel=layer.kernel,
            likelihood=likelihood,
            inducing_inputs=Z,
            precisions=start.precisions,
            steps=self.steps,
            jitter=single_layer_jitter(likelihood),
        )
        X, Y, num_iterations = self.X, self.Y, 0 if is_fitted else policy.ITERATIONS
        if len(X) > _MOST_ROWS and start.precisions is None:
            some = self._some_rows
            of_some = None if weights is None else weights[some]
            fit_to(with_weights(X[some], Y[some], of_some), max_iterations=num_iterations)
            num_iterations = 0
        fitted = fit_to(with_weights(X, Y, weights), max_iterations=num_iterations)
        layer.noise_variance.assign(likelihood.variance)
        if layer.precisions is not None:
            layer.precisions.assign(fitted.precisions)
        if has_own_noise:
            model.likelihood = with_own_noise(likelihood, num_outputs)
            if model.likelihood.variance.trainable:
                model.likelihood.variance.assign(self._noise_of_outputs(model))
        trace = start.trace if is_fitted and start.trace is not None else fitted.trace
        return history_of_fit(trace, len(self.X), began)

    def _noise_of_outputs(self, model: DeepWishartProcess) -> Array:
        """The variances with which the bound is highest, [P], given the posterior."""
        layer, likelihood = model.output_layer, model.likelihood
        moments = model.posterior(1, seed=0).predict_f(self.X)
        mean, variance = (moment.numpy() for moment in moments)
        squares = (observed(likelihood).functions(self.Y) - mean) ** 2 + variance
        counts = np.ones(len(self.X)) if self.weights is None else self.weights
        precisions = 1.0 if layer.precisions is None else layer.precisions.numpy()
        total, count = (counts * precisions) @ squares, counts.sum()
        if isinstance(likelihood, RowMeansGaussian):
            total = total + likelihood.num_pooled * likelihood.pooled_variance
            count = len(self.X) + likelihood.num_pooled
        return np.maximum(total / count, 2.0 * likelihood.variance_lower_bound)

    def take_steps(
        self,
        model: DeepWishartProcess,
        num_steps: int,
        *,
        annealing: float | None = None,
        seed: int = 0,
        callbacks: Sequence[Callback] = (),
    ) -> TrainingHistory:
        """Train by gradients.

        :param annealing: Over which share of the steps log ratios are annealed; None for the
            protocol's, which is for a model that has not been trained.
        :param seed: Added to the trainer's.
        :param callbacks: Called 20 times.
        :raises KeyboardInterrupt: If Ctrl-C has ended it, as ``fit`` alone would not tell.
        """
        annealing_steps = PROTOCOLS["fast"].kl_annealing_steps(model, num_steps)
        if annealing is not None:
            annealing_steps = round(annealing * num_steps)
        history = fit_with_held_out(
            model,
            self.rows(),
            self.validation_data,
            num_steps,
            patience=self.choice.patience,
            kl_annealing_steps=annealing_steps,
            batch_size=self.choice.batch_size,
            seed=self.seed + seed,
            callbacks=callbacks,
            progress=self.progress,
        )
        if history.stop_reason.startswith("interrupted"):
            raise KeyboardInterrupt
        return history

    def estimate_bound(self, model: DeepWishartProcess) -> float:
        """The bound, in nats: of densities, also where rows are recorded to a step.

        Of more rows than 20,000, so many drawn at random stand for all, the same in each call; for
        a regression, which takes in all of them each time, 2,000 do.
        """
        num_samples = model.num_samples
        model.num_samples = _DRAWS_FOR_BOUND if model.hidden_layers else 1
        try:
            some = self._some_rows
            if isinstance(model.output_layer, RegressionGPLayer):
                some = some[:: math.ceil(len(some) / _ROWS_FOR_BOUND)]
            blocks = np.array_split(some, math.ceil(len(some) / _ROWS_FOR_BOUND))
            bounds = [float(model.elbo(self.rows(rows), seed=0)) for rows in blocks]
            return float(np.average(bounds, weights=[len(rows) for rows in blocks]))
        finally:
            model.num_samples = num_samples

    @functools.cached_property
    def _some_rows(self) -> npt.NDArray[np.int64]:
        """Rows that stand for all of many."""
        return np.sort(random_order(len(self.X), 0)[:_MOST_ROWS])

    def _num_inducing(self, start: Start, depth: int) -> int:
        num_data, (least, most) = len(self.X), _INDUCING
        if depth == 1 and start.is_gaussian:
            if num_data <= policy.EXACT_ROWS:
                return num_data
            return int(np.clip(math.sqrt(_SPARSE_WORK / num_data), least, most))
        are_numbers = start.is_gaussian or isinstance(start.likelihood, HeteroskedasticGaussian)
        if self.choice.batch_size is None or not are_numbers:
            return least
        return min(num_data, _INDUCING_OF_BATCHES)


def fewer_inducing_inputs(model: DeepKernelProcess, X: Array) -> Array | None:
    """Inducing inputs of a single layer, [M, D]; None where they are all rows, and it is exact."""
    is_exact = model.output_layer.num_inducing == len(np.unique(X, axis=0))
    return None if is_exact else model.inducing_variable.Z.numpy()


def history_of_fit(trace: Array, num_data: int, began: float) -> TrainingHistory:
    """The history of a fit by L-BFGS that began at some time."""
    seconds = time.perf_counter() - began
    return TrainingHistory(trace, np.zeros((len(trace), 1)), num_data, seconds, "L-BFGS ended")


def rows_of_batches(num_data: int, likelihood: Likelihood | None) -> int | None:
    """Return the rows of a minibatch, or None for all; without a likelihood noise is normal."""
    if likelihood is not None and num_data > _ROWS_OF_LABELS:
        return _ROWS_OF_LABELS
    return PROTOCOLS["fast"].batch_size(num_data)
