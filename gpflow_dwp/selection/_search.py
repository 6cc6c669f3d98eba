"""The search for a model: single layers first, and deeper ones that start at what these learned."""

from __future__ import annotations

import copy
import dataclasses
import math
import time
import warnings
from typing import Any, NamedTuple

import gpflow
import numpy as np
import numpy.typing as npt
from gpflow.base import RegressionData
from gpflow.likelihoods import Gaussian, Likelihood
from gpflow.utilities import multiple_assign, read_values

from gpflow_dwp.base import Array, TrainingData
from gpflow_dwp.exceptions import CholeskyError, CollapseWarning, NonFiniteBoundError
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods import (
    HeteroskedasticGaussian,
    Noise,
    SinhArcsinh,
    WarpedGaussian,
    WarpedStudentT,
)
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models import DeepWishartProcess, build_deep_wishart_process
from gpflow_dwp.models.assembly import OutputPosterior, suitable_output
from gpflow_dwp.models.deepening import make_nearly_linear, start_at
from gpflow_dwp.models.named_kernels import make_kernels, positive_by_exp
from gpflow_dwp.objectives import Estimator
from gpflow_dwp.selection._kernels import initial_kernel, with_latents
from gpflow_dwp.selection._starts import (
    Start,
    best_start,
    noise_variance,
    num_lengthscales,
    single_layer_jitter,
    with_own_noise,
)
from gpflow_dwp.selection.candidates import Auto, Candidate
from gpflow_dwp.selection.gaussian_process import fit_gaussian_process
from gpflow_dwp.training import PROTOCOLS, Callback, TrainingHistory, TrainingProgress
from gpflow_dwp.training.early_stopping import fit_with_held_out

__all__ = ["Search", "Trial", "rows_of_batches"]

# Exact inference costs N³: above so many rows, kernel and warp are chosen on some of them ...
_ROWS_FOR_CHOICE = 500
# ... and above so many, inference is sparse, with this product of rows and squared inducing points.
_EXACT_ROWS = 1_000
_SPARSE_WORK = 2.5e8
_INDUCING = (100, 500)
# With minibatches, rows are many: so many inducing points in a single layer and in deeper models.
_INDUCING_OF_BATCHES = (300, 200)
# Pseudo-targets learn as fast from minibatches, and a single layer of them in half the steps.
_ROWS_OF_LABELS = 500
# A lengthscale of each input has to gain so much, as in Akaike's criterion: few rows cannot tell
# many, and the evidence of the best ones does not count that.
_NATS_OF_LENGTHSCALE = 1.0
# Heavy tails have to gain as little: where there are none they cost nothing, and where there are
# some, normal noise can cost more for a single new row.
_NATS_OF_TAILS = 1.0
# Deeper models, and noise by place, start with this variance of noise, at least.
_LEAST_NOISE = 0.02
# With more rows in a step, each trial of a depth takes three fifths of the steps.
_ROWS_OF_LONG_TRIALS = 500
_DRAWS_FOR_BOUND = 20
_ROWS_FOR_BOUND = 2_000


class Trial(NamedTuple):
    """A model that was trained, how that went, and how many steps it was spared."""

    model: DeepWishartProcess
    history: TrainingHistory
    candidate: Candidate
    steps_left: int = 0


@dataclasses.dataclass
class Search:
    """Trains models of some data, and records them."""

    X: Array
    Y: Array
    weights: Array | None
    num_inducing: int | Auto
    output: OutputPosterior | None
    num_steps: int
    batch_size: int | None
    progress: bool
    architecture: dict[str, Any]
    seed: int
    estimator: Estimator = Estimator()
    candidates: list[Candidate] = dataclasses.field(default_factory=list)
    validation_data: RegressionData | None = None
    patience: int = 10

    def rows(self, index: slice | npt.NDArray[np.int64] = slice(None)) -> TrainingData:
        """Some of the data, or all."""
        pair = self.X[index], self.Y[index]
        return pair if self.weights is None else (*pair, self.weights[index])

    def choose_kernel(self, kernels: tuple[str, ...], warp: bool) -> Start:
        """Choose the kernel of a single layer with Gaussian noise."""
        num_inputs = self.X.shape[1]

        def fitted(name: str, variance: float, ard: bool = True) -> Start:
            kernel = initial_kernel(name, num_inputs, ard=ard)
            return self._fit_process(Start(name, kernel, self._gaussian(warp, variance)))

        best = best_start([fitted(name, 0.1) for name in kernels])
        if len(kernels) > 1 and num_inputs > 1:
            best = best_start([best, fitted(best.name, noise_variance(best.likelihood), ard=False)])
        return best

    def choose_noise(self, start: Start, warp: bool | Auto, noise: Noise | Auto) -> Start:
        """Choose warp and tails of its noise, which are the same everywhere."""

        def refitted(likelihood: Likelihood) -> Start:
            kernel = copy.deepcopy(start.kernel)
            return self._fit_process(start._replace(kernel=kernel, likelihood=likelihood))

        if warp == "auto":
            warped = refitted(self._gaussian(True, noise_variance(start.likelihood)))
            start = best_start([start, warped])
        if noise in ("auto", "student_t"):
            with positive_by_exp():
                heavy = WarpedStudentT.of(start.likelihood)
            start = (
                refitted(heavy) if noise == "student_t" else best_start([start, refitted(heavy)])
            )
        return start

    def with_noise_by_place(self, start: Start) -> Start:
        """The same process, with noise that is a function of the inputs."""
        scale = math.sqrt(max(noise_variance(start.likelihood), _LEAST_NOISE))
        return start._replace(likelihood=HeteroskedasticGaussian(self.Y.shape[1], scale))

    def _gaussian(self, warp: bool, variance: float) -> Gaussian:
        with positive_by_exp():
            if warp:
                return WarpedGaussian(SinhArcsinh(self.Y.shape[1]), variance)
            return Gaussian(variance)

    def _fit_process(self, start: Start) -> Start:
        """Fit it to as many rows as are enough to choose by."""
        began = time.perf_counter()
        rows = np.random.default_rng(self.seed).permutation(len(self.X))[:_ROWS_FOR_CHOICE]
        elbo, course, of_rows = fit_gaussian_process(
            self.rows(rows),
            start.kernel,
            start.likelihood,
            jitter=single_layer_jitter(),
            max_iterations=min(100, self.num_steps),
        )
        self._record(1, start, len(rows), elbo, began)
        precisions = None
        if of_rows is not None:
            precisions = np.ones(len(self.X))
            precisions[rows] = of_rows
        has_tails = isinstance(start.likelihood, WarpedStudentT)
        num_counted = (
            sum(int(np.size(each)) for each in start.likelihood.trainable_parameters) - has_tails
        )
        penalty = 0.5 * num_counted * math.log(len(rows)) + _NATS_OF_TAILS * has_tails
        penalty += _NATS_OF_LENGTHSCALE * num_lengthscales(start.kernel)
        return start._replace(evidence=elbo - penalty, course=course, precisions=precisions)

    def train(
        self,
        start: Start,
        depth: int,
        target: float = -math.inf,
        shallower: DeepWishartProcess | None = None,
    ) -> Trial:
        """Train a model of some depth; with a target, only while its bound may reach it.

        :param shallower: A trained model with a hidden layer less, at which one of several starts.
        """
        began = time.perf_counter()
        model = self._build(start, depth)
        grows = shallower is not None and shallower.num_hidden_layers > 0
        if shallower is not None and grows:
            start_at(model, shallower)
        is_regression = isinstance(model.output_layer, RegressionGPLayer)
        left = 0
        if depth == 1 and is_regression and self.Y.shape[1] == 1:
            history, elbo = self._fit_single_layer(model, start)
        else:
            is_by_place = isinstance(start.likelihood, HeteroskedasticGaussian)
            in_all = self.num_steps if depth > 1 or is_by_place else max(1, self.num_steps // 2)
            is_long = (self.batch_size or len(self.X)) > _ROWS_OF_LONG_TRIALS
            num_steps = max(1, 3 * in_all // 5) if is_long and target > -math.inf else in_all
            try:
                history = self._take_steps(model, num_steps, target, grows=grows)
                left = in_all - num_steps if history.num_steps == num_steps else 0
                elbo = self._estimate_bound(model)
            except (CholeskyError, NonFiniteBoundError):
                if target == -math.inf:
                    raise
                seconds = time.perf_counter() - began
                nothing = np.zeros(0), np.zeros((0, 1))
                history = TrainingHistory(*nothing, len(self.X), seconds, "not finite")
                elbo = -math.inf
        return Trial(model, history, self._record(depth, start, len(self.X), elbo, began), left)

    def _fit_single_layer(
        self, model: DeepWishartProcess, start: Start
    ) -> tuple[TrainingHistory, float]:
        """Fit it by L-BFGS; return also its bound, in nats."""
        began = time.perf_counter()
        layer = model.output_layer
        is_exact = layer.num_inducing == len(np.unique(self.X, axis=0))
        is_fitted = is_exact and len(self.X) <= _ROWS_FOR_CHOICE
        fitted = fit_gaussian_process(
            self.rows(),
            layer.kernel,
            model.likelihood,
            None if is_exact else model.inducing_variable.Z.numpy(),
            precisions=start.precisions,
            jitter=single_layer_jitter(),
            max_iterations=0 if is_fitted else min(50, self.num_steps),
        )
        layer.noise_variance.assign(model.likelihood.variance)
        if layer.precisions is not None:
            layer.precisions.assign(fitted.precisions)
        course = start.course if is_fitted and start.course is not None else fitted.course
        seconds = time.perf_counter() - began
        no_nats = np.zeros((len(course), 1))
        history = TrainingHistory(course, no_nats, len(self.X), seconds, "L-BFGS ended")
        return history, self._estimate_bound(model)

    def _take_steps(
        self, model: DeepWishartProcess, num_steps: int, target: float, *, grows: bool
    ) -> TrainingHistory:
        """Train by gradients, only while the bound may reach the target."""
        annealing = PROTOCOLS["fast"].kl_annealing_steps(model, num_steps)
        if grows:  # One layer is new.
            annealing = min(annealing, num_steps // 6)
        with warnings.catch_warnings():
            if target > -math.inf:  # It may not be kept.
                warnings.simplefilter("ignore", CollapseWarning)
            return self._fit(model, num_steps, annealing, [_GiveUp(target, annealing)])

    def _fit(
        self, model: DeepWishartProcess, num_steps: int, annealing: int, callbacks: list[Callback]
    ) -> TrainingHistory:
        return fit_with_held_out(
            model,
            self.rows(),
            self.validation_data,
            num_steps,
            patience=self.patience,
            kl_annealing_steps=annealing,
            callbacks=callbacks,
            batch_size=self.batch_size,
            estimator=self.estimator,
            seed=self.seed,
            progress=self.progress,
        )

    def finish(self, trial: Trial) -> Trial:
        """Take the steps that a trial was spared, unless they raise its bound no further."""
        if not trial.steps_left:
            return trial
        began, (model, first, candidate, _) = time.perf_counter(), trial
        before = read_values(model)
        try:
            last = self._fit(model, trial.steps_left, 0, [])
            elbo = self._estimate_bound(model)
        except (CholeskyError, NonFiniteBoundError):
            elbo = -math.inf
        if not elbo > candidate.elbo:
            multiple_assign(model, before)
            return trial
        seconds = candidate.seconds + time.perf_counter() - began
        finished = candidate._replace(elbo=elbo, seconds=seconds)
        self.candidates[self.candidates.index(candidate)] = finished
        return Trial(model, first.followed_by(last), finished)

    def _build(self, start: Start, depth: int) -> DeepWishartProcess:
        num_data, num_inputs = self.X.shape
        is_regression = start.is_gaussian and not self.latent_dim
        with positive_by_exp():
            kernels = [
                with_latents(start.kernel, self.latent_dim),
                *make_kernels(start.name, depth, num_inputs + self.latent_dim)[1:],
            ]
        if depth > 1:
            kernels[0].variance.assign(1.0)
        if start.is_gaussian:  # Labels gain nothing by it.
            for kernel in kernels[:-1]:
                make_nearly_linear(kernel)
        # The scale of the functions is that of the last layer.
        kernels[-1].variance.assign(start.kernel.variance)
        num_inducing = self.num_inducing
        if num_inducing == "auto":
            num_inducing = self._num_inducing(start, depth, is_regression)
        output = self.output
        if output is None and depth == 1 and is_regression:
            output = "regression"  # It is fitted to all rows as fast as to some.
        if output is None:
            output = suitable_output(num_data, start.likelihood, self.latent_dim, self.batch_size)
        likelihood = with_own_noise(start.likelihood, self.Y.shape[1])
        if depth > 1 and start.is_gaussian:
            # Features are random as yet, and the noise of a good process leaves no room for that.
            likelihood.variance.assign(np.maximum(likelihood.variance, _LEAST_NOISE))
        model = build_deep_wishart_process(
            self.rows(),
            depth,
            num_inducing=num_inducing,
            kernel=kernels,
            likelihood=likelihood,
            output=output,
            jitter=single_layer_jitter() if output == "regression" and depth == 1 else None,
            seed=self.seed,
            **self.architecture,
        )
        layer = model.output_layer
        if isinstance(layer, RegressionGPLayer) and layer.precisions is not None:
            layer.precisions.assign(start.precisions)
        return model

    def _num_inducing(self, start: Start, depth: int, is_regression: bool) -> int:
        num_data, (least, most) = len(self.X), _INDUCING
        if depth == 1 and is_regression:
            if num_data <= _EXACT_ROWS:
                return num_data
            return int(np.clip(math.sqrt(_SPARSE_WORK / num_data), least, most))
        if self.batch_size is None or not start.is_of_numbers:
            return least
        return min(num_data, _INDUCING_OF_BATCHES[depth > 1])

    @property
    def latent_dim(self) -> int:
        """W, latent variables of each row."""
        return int(self.architecture["latent_dim"])

    def _estimate_bound(self, model: DeepWishartProcess) -> float:
        """The bound of all rows, in nats."""
        num_samples, model.num_samples = model.num_samples, _DRAWS_FOR_BOUND
        try:
            num_data = len(self.X)
            blocks = np.array_split(np.arange(num_data), math.ceil(num_data / _ROWS_FOR_BOUND))
            bounds = [
                float(model.elbo(self.rows(rows), estimator=self.estimator, seed=0))
                for rows in blocks
            ]
            return float(np.average(bounds, weights=[len(rows) for rows in blocks]))
        finally:
            model.num_samples = num_samples

    def _record(self, depth: int, start: Start, rows: int, elbo: float, began: float) -> Candidate:
        warp = warp_of(start.likelihood)
        warped = isinstance(warp, gpflow.Module) and bool(warp.trainable_parameters)
        noise: Noise = "student_t" if isinstance(start.likelihood, WarpedStudentT) else "gaussian"
        if isinstance(start.likelihood, HeteroskedasticGaussian):
            noise = "heteroskedastic"
        seconds = time.perf_counter() - began
        ard = num_lengthscales(start.kernel) > 1
        candidate = Candidate(depth, start.name, ard, warped, noise, rows, elbo, seconds)
        self.candidates.append(candidate)
        return candidate


class _GiveUp:
    """A callback that ends a run whose bound would not reach a target at its present pace.

    The pace falls with the learning rate, so half of it is counted on.
    """

    def __init__(self, target: float, begin: int) -> None:
        self._target = target
        self._begin = begin
        self._last = 0, -math.inf

    def __call__(self, progress: TrainingProgress) -> bool:
        (step, bound), self._last = self._last, (progress.step, progress.elbo)
        interval = progress.step - step
        if progress.step < self._begin + interval:
            return False
        calls_left = (progress.num_steps - progress.step) / interval
        return progress.elbo + 0.5 * calls_left * (progress.elbo - bound) < self._target


def rows_of_batches(num_data: int, likelihood: Likelihood | None) -> int | None:
    """Return the rows of a minibatch, or None for all; without a likelihood noise is normal."""
    if likelihood is not None and num_data > _ROWS_OF_LABELS:
        return _ROWS_OF_LABELS
    return PROTOCOLS["fast"].batch_size(num_data)
