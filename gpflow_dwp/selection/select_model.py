"""From data to the model of them that has the highest bound."""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.base import Parameter, RegressionData
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian, Likelihood

from gpflow_dwp.data import check_pair
from gpflow_dwp.layers import PosteriorFamily, RegressionGPLayer
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedGaussian
from gpflow_dwp.models import (
    KERNELS,
    DeepWishartProcess,
    InducingChoice,
    OutputPosterior,
    build_deep_wishart_process,
    make_kernels,
    positive_by_exp,
    suitable_output,
)
from gpflow_dwp.selection.gaussian_process import fit_gaussian_process
from gpflow_dwp.training import PROTOCOLS, TrainingHistory, TrainingProgress, fit
from gpflow_dwp.validation import check_choice, check_flags, check_integers

__all__ = ["CANDIDATE_KERNELS", "Auto", "Candidate", "Selection", "select_model"]

Array = npt.NDArray[np.float64]

Auto = Literal["auto"]
"""What leaves a choice to the bound."""

CANDIDATE_KERNELS = ("SquaredExponential", "Matern52", "Matern32")
"""Kernels that are tried where none is asked for."""

_DEEPEST = 3
# Exact inference costs N³: above so many rows, kernel and warp are chosen on some of them ...
_ROWS_FOR_CHOICE = 500
# ... and above so many, inference is sparse, with this product of rows and squared inducing points.
_EXACT_ROWS = 1_000
_SPARSE_WORK = 2.5e8
_INDUCING = (100, 500)
# Pseudo-targets learn as fast from minibatches, and a single layer of them in half the steps.
_ROWS_OF_LABELS = 500
_DRAWS_FOR_BOUND = 20
_ROWS_FOR_BOUND = 2_000


class Candidate(NamedTuple):
    """A model that was tried.

    :param depth: GP layers of the equivalent deep GP.
    :param kernel: Name of its kernels.
    :param warp: Whether its observations are warped.
    :param num_data: N, the rows that it was fitted to.
    :param elbo: Its bound of these rows' evidence, in nats.
    :param seconds: Wall-clock time of its fit.
    """

    depth: int
    kernel: str
    warp: bool
    num_data: int
    elbo: float
    seconds: float


class Selection(NamedTuple):
    """The best of the models that were tried.

    :param model: It, trained.
    :param history: The course of its training. Of a regression with a single layer it is what L-BFGS
        maximised, at each iteration and all in the data's term: the bound, with the log density of
        the parameters' priors.
    :param candidates: All that were tried, in their order.
    """

    model: DeepWishartProcess
    history: TrainingHistory
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        """The candidate that the model is."""
        depth = len(self.model.layers)
        return next(each for each in reversed(self.candidates) if each.depth == depth)


def select_model(
    data: RegressionData,
    *,
    depth: int | Auto = "auto",
    kernel: str | Auto = "auto",
    warp: bool | Auto = "auto",
    num_inducing: int | Auto = "auto",
    likelihood: Likelihood | None = None,
    posterior: PosteriorFamily = "AB",
    whiten: bool = False,
    width: int | None = None,
    output: OutputPosterior | None = None,
    inducing: InducingChoice = "subset",
    num_steps: int = 1_000,
    batch_size: int | None = None,
    num_samples: int = 2,
    seed: int = 0,
    progress: bool = True,
) -> Selection:
    """Fit models of several depths, and keep the one with the highest bound.

    Bounds of the same data can be compared, whatever the depth, the kernels or the warp. With a
    single layer and Gaussian noise the bound is the marginal likelihood of a Gaussian process, or
    that of sparse regression, which L-BFGS maximises within seconds. So kernel and warp are chosen
    there: the kernel that has the highest, and a warp where it gains more than its parameters count
    for in the Bayesian information criterion. Deeper models start at what the single layer has
    learned. They are given up as soon as their bound would not reach the best one's at its present
    pace.

    For other likelihoods only the depth is chosen. Functions start with a variance of 10, so that
    labels can be sure.

    :param data: Inputs [N, D], standardised, and observations [N, P], standardised as well where
        the noise is Gaussian.
    :param depth: GP layers of the equivalent deep GP; "auto" for 1, then 2 and 3 for as long as
        the bound grows.
    :param kernel: A name in :data:`gpflow_dwp.models.KERNELS`, for all layers; "auto" for one of
        :data:`CANDIDATE_KERNELS`, or the first of them for a likelihood that is given.
    :param warp: Whether observations are warped, by a :class:`SinhArcsinh`; not for a likelihood
        that is given.
    :param num_inducing: M, at most; "auto" for all rows up to 1,000 and at most 500 above in a
        single layer, and for 100 in deeper models and for a likelihood that is given.
    :param likelihood: Of another kind than Gaussian; None for that.
    :param posterior: As for :func:`build_deep_wishart_process`, like the next four.
    :param whiten: See there.
    :param width: See there.
    :param output: See there; for all depths.
    :param inducing: See there.
    :param num_steps: Gradient steps of a model of several layers, at most; a single layer takes at
        most 100 iterations of L-BFGS, or of another likelihood half the steps.
    :param batch_size: Rows of a minibatch in these steps; None for all up to 2,000 rows and for
        1,000 above; of another likelihood, for all up to 500 and for 500 above.
    :param num_samples: S in these steps.
    :param seed: For starting values, draws and minibatches.
    :param progress: Whether to show progress bars.
    :raises ValueError: If an argument or the data cannot be used; nothing has been fitted then.
    """
    X, Y = check_pair(data)
    if depth != "auto":
        check_integers(depth=depth)
    if num_inducing != "auto":
        check_integers(num_inducing=num_inducing)
    if kernel != "auto":
        check_choice(KERNELS, kernel=kernel)
    if warp != "auto":
        check_flags(warp=warp)
    if isinstance(likelihood, Gaussian):
        raise ValueError("likelihood must be None for Gaussian noise, got a Gaussian one.")
    check_integers(num_steps=num_steps, num_samples=num_samples)
    if batch_size is not None:
        check_integers(batch_size=batch_size)
    architecture: dict[str, Any] = {
        "posterior": posterior,
        "whiten": whiten,
        "width": width,
        "inducing": inducing,
        "num_samples": num_samples,
    }
    # What cannot be used is refused here, before anything is fitted.
    build_deep_wishart_process(
        (X, Y),
        1 if depth == "auto" else depth,
        num_inducing=1 if num_inducing == "auto" else num_inducing,
        likelihood=likelihood,
        output=output,
        seed=seed,
        **architecture,
    )
    search = _Search(
        X,
        Y,
        num_inducing,
        output,
        num_steps,
        _rows_of_batches(len(X), likelihood) if batch_size is None else batch_size,
        progress,
        architecture,
        seed,
    )
    if likelihood is None:
        start = search.choose_process(CANDIDATE_KERNELS if kernel == "auto" else (kernel,), warp)
    else:
        name = CANDIDATE_KERNELS[0] if kernel == "auto" else kernel
        start = _Start(name, _initial_kernel(name, X.shape[1], variance=10.0), likelihood)
    if depth != "auto":
        model, history = search.train(start, depth)
        return Selection(model, history, tuple(search.candidates))
    model, history = search.train(start, 1)
    for deeper in range(2, _DEEPEST + 1):
        best = search.candidates[-1].elbo
        trial = search.train(start, deeper, best)
        if search.candidates[-1].elbo <= best:
            break
        model, history = trial
    return Selection(model, history, tuple(search.candidates))


class _Start(NamedTuple):
    """Where models start: at a Gaussian process that was fitted to some rows, or to all."""

    name: str
    kernel: Kernel
    likelihood: Likelihood
    course: Array | None = None

    @property
    def is_gaussian(self) -> bool:
        """Whether a single layer can be fitted by a regression."""
        return isinstance(self.likelihood, Gaussian)


@dataclasses.dataclass
class _Search:
    X: Array
    Y: Array
    num_inducing: int | Auto
    output: OutputPosterior | None
    num_steps: int
    batch_size: int | None
    progress: bool
    architecture: dict[str, Any]
    seed: int
    candidates: list[Candidate] = dataclasses.field(default_factory=list)

    def choose_process(self, kernels: tuple[str, ...], warp: bool | Auto) -> _Start:
        """Choose kernel and warp of a single layer."""
        rows = np.random.default_rng(self.seed).permutation(len(self.X))[:_ROWS_FOR_CHOICE]
        num_inputs, num_outputs = self.X.shape[1], self.Y.shape[1]
        fitted: list[tuple[float, _Start]] = []

        def try_process(start: _Start, num_parameters: int = 0) -> None:
            began = time.perf_counter()
            data = self.X[rows], self.Y[rows]
            elbo, course = fit_gaussian_process(
                data, start.kernel, start.likelihood, max_iterations=min(100, self.num_steps)
            )
            self._record(1, start, len(rows), elbo, began)
            penalty = 0.5 * num_parameters * math.log(len(rows))
            fitted.append((elbo - penalty, start._replace(course=course)))

        for name in kernels:
            with positive_by_exp():
                likelihood = _gaussian(num_outputs, warp is True, 0.1)
            try_process(_Start(name, _initial_kernel(name, num_inputs), likelihood))
        best = max(fitted, key=lambda pair: pair[0])[1]
        if warp == "auto":
            with positive_by_exp():
                likelihood = _gaussian(num_outputs, True, _noise_variance(best.likelihood))
            unwarped = best.likelihood.trainable_parameters
            num_parameters = _size(likelihood.trainable_parameters) - _size(unwarped)
            try_process(
                best._replace(kernel=copy.deepcopy(best.kernel), likelihood=likelihood),
                num_parameters,
            )
            best = max(fitted, key=lambda pair: pair[0])[1]
        return best

    def train(
        self, start: _Start, depth: int, target: float = -math.inf
    ) -> tuple[DeepWishartProcess, TrainingHistory]:
        """Train a model of some depth; with a target, only while its bound may reach it."""
        began = time.perf_counter()
        model = self._build(start, depth)
        layer = model.output_layer
        if depth == 1 and isinstance(layer, RegressionGPLayer) and self.Y.shape[1] == 1:
            is_exact = layer.num_inducing == len(np.unique(self.X, axis=0))
            is_fitted = is_exact and len(self.X) <= _ROWS_FOR_CHOICE
            fitted = fit_gaussian_process(
                (self.X, self.Y),
                layer.kernel,
                model.likelihood,
                None if is_exact else model.inducing_variable.Z.numpy(),
                max_iterations=0 if is_fitted else min(50, self.num_steps),
            )
            layer.noise_variance.assign(model.likelihood.variance)
            elbo = fitted.elbo
            course = start.course if is_fitted and start.course is not None else fitted.course
            history = TrainingHistory(
                course,
                np.zeros((len(course), 1)),
                len(self.X),
                time.perf_counter() - began,
                "L-BFGS ended",
            )
        else:
            num_steps = self.num_steps if depth > 1 else max(1, self.num_steps // 2)
            interval = max(1, num_steps // 20)
            history = fit(
                model,
                (self.X, self.Y),
                num_steps,
                batch_size=self.batch_size,
                seed=self.seed,
                callbacks=[_GiveUp(target, interval, num_steps * min(max(depth - 1, 1), 3) // 6)],
                callback_interval=interval,
                progress=self.progress,
            )
            elbo = _estimate_bound(model, self.X, self.Y)
        self._record(depth, start, len(self.X), elbo, began)
        return model, history

    def _build(self, start: _Start, depth: int) -> DeepWishartProcess:
        num_data, num_inputs = self.X.shape
        with positive_by_exp():
            kernels = [
                copy.deepcopy(start.kernel),
                *make_kernels(start.name, depth, num_inputs)[1:],
            ]
        # The scale of the functions is that of the last layer.
        kernels[-1].variance.assign(start.kernel.variance)
        if depth > 1:
            kernels[0].variance.assign(1.0)
        num_inducing = self.num_inducing
        if num_inducing == "auto":
            least, most = _INDUCING
            if depth > 1 or not start.is_gaussian:
                num_inducing = least
            elif num_data <= _EXACT_ROWS:
                num_inducing = num_data
            else:
                num_inducing = int(np.clip(math.sqrt(_SPARSE_WORK / num_data), least, most))
        output = self.output
        if output is None and depth == 1 and start.is_gaussian:
            output = "regression"  # It is fitted to all rows as fast as to some.
        if output is None:
            output = suitable_output(num_data, start.likelihood, 0, self.batch_size)
        return build_deep_wishart_process(
            (self.X, self.Y),
            depth,
            num_inducing=num_inducing,
            kernel=kernels,
            likelihood=_with_own_noise(start.likelihood, self.Y.shape[1]),
            output=output,
            seed=self.seed,
            **self.architecture,
        )

    def _record(self, depth: int, start: _Start, rows: int, elbo: float, began: float) -> None:
        warped = isinstance(start.likelihood, WarpedGaussian)
        seconds = time.perf_counter() - began
        self.candidates.append(Candidate(depth, start.name, warped, rows, elbo, seconds))


def _rows_of_batches(num_data: int, likelihood: Likelihood | None) -> int | None:
    if likelihood is not None and num_data > _ROWS_OF_LABELS:
        return _ROWS_OF_LABELS
    return PROTOCOLS["fast"].batch_size(num_data)


def _initial_kernel(name: str, num_inputs: int, variance: float = 1.0) -> Kernel:
    with positive_by_exp():
        kernel = make_kernels(name, 1, num_inputs)[0]
    if hasattr(kernel, "lengthscales"):
        # About the distance between two standardised rows.
        kernel.lengthscales.assign(np.full(num_inputs, math.sqrt(2.0 * num_inputs)))
    kernel.variance.assign(variance)
    return kernel


def _gaussian(num_outputs: int, warp: bool, variance: float) -> Gaussian:
    return WarpedGaussian(SinhArcsinh(num_outputs), variance) if warp else Gaussian(variance)


def _with_own_noise(likelihood: Likelihood, num_outputs: int) -> Likelihood:
    """A copy, in which every output has a noise of its own."""
    likelihood = copy.deepcopy(likelihood)
    if not isinstance(likelihood, Gaussian) or num_outputs == 1:
        return likelihood
    variance = np.full(num_outputs, likelihood.variance_at(np.zeros((1, 1)))[0])
    with positive_by_exp():
        if isinstance(likelihood, WarpedGaussian):
            return WarpedGaussian(likelihood.warp, variance)
        return Gaussian(variance)


def _noise_variance(likelihood: Likelihood) -> float:
    return float(tf.convert_to_tensor(likelihood.variance))


def _size(parameters: Iterable[Parameter]) -> int:
    return sum(int(np.size(parameter)) for parameter in parameters)


def _estimate_bound(model: DeepWishartProcess, X: Array, Y: Array) -> float:
    """The bound of all rows, in nats."""
    num_samples, model.num_samples = model.num_samples, _DRAWS_FOR_BOUND
    try:
        blocks = np.array_split(np.arange(len(X)), math.ceil(len(X) / _ROWS_FOR_BOUND))
        bounds = [float(model.elbo((X[rows], Y[rows]), seed=0)) for rows in blocks]
        return float(np.average(bounds, weights=[len(rows) for rows in blocks]))
    finally:
        model.num_samples = num_samples


class _GiveUp:
    """Ends a run whose bound would not reach a target at its present pace.

    The pace falls with the learning rate, so half of it is counted on.
    """

    def __init__(self, target: float, interval: int, begin: int) -> None:
        self._target = target
        self._interval = interval
        self._begin = begin
        self._last = -math.inf

    def __call__(self, progress: TrainingProgress) -> bool:
        last, self._last = self._last, progress.elbo
        if progress.step < self._begin + self._interval:
            return False
        calls_left = (progress.num_steps - progress.step) / self._interval
        return progress.elbo + 0.5 * calls_left * (progress.elbo - last) < self._target
