"""A fitted regressor that takes in further runs."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from gpflow.kernels import SeparateIndependent
from gpflow.likelihoods import Gaussian
from threadpoolctl import threadpool_limits

from gpflow_dwp.base import Array, TrainingData
from gpflow_dwp.data import Standardiser
from gpflow_dwp.estimator._base import DeepWishartEstimator
from gpflow_dwp.estimator._numbers import standardiser_of_seen
from gpflow_dwp.exceptions import CollapseWarning
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods import WarpedGaussian
from gpflow_dwp.likelihoods.named import is_noise_free, name_of_likelihood
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.models import KERNELS, DeepWishartProcess, build_deep_wishart_process
from gpflow_dwp.models.named_kernels import kernel_name
from gpflow_dwp.selection import leave_one_out, policy, select_model
from gpflow_dwp.selection.choice import OF_MODELS, Choice
from gpflow_dwp.selection.conditioning import condition, with_rows
from gpflow_dwp.selection.deepening import start_at_smaller
from gpflow_dwp.selection.kernel_draws import draw_kernel_of
from gpflow_dwp.selection.observations import recorded_steps, weights_of_evidence
from gpflow_dwp.selection.outputs import fit_outputs
from gpflow_dwp.selection.trainer import Trainer
from gpflow_dwp.training import fit
from gpflow_dwp.validation import as_weighted, with_weights

# Where the noise of a deep model starts again: new runs may be a surprise.
_LEAST_NOISE = 1e-4
_MOST_INDUCING, _MOST_EXACT = 100, 1_000
_MOST_ITERATIONS = 100
# Up to so many runs a deep model is trained from the start as well, with so many times the steps:
# what one of few runs took to be chance stays that, however long it goes on.
_FEW_RUNS, _TIMES_ANEW = 120, 6
_DRAWS = 40
# Of a column's scale, either way, to which its units still are those of the first fit.
_MOST_GROWTH = 2.0


def take_in(
    estimator: DeepWishartEstimator,
    X: Array,
    Y: Array,
    num_steps: int,
    noise_std: Array | None = None,
) -> None:
    """Train the model of an estimator on further runs as well, or a new one where units change.

    :param X: Raw inputs of the new runs, [B, D].
    :param Y: Raw outputs, [B, P].
    :param noise_std: Of each of them, [B], if that is known, as it is of those before.
    """
    old_X, old_Y, weights = estimator._rows
    if weights is not None:
        weights = np.concatenate([weights, np.ones(len(X))])
    rows = np.concatenate([old_X, X]), np.concatenate([old_Y, Y])
    units = estimator.input_standardiser_, estimator.output_standardiser_
    if noise_std is not None:
        noise_std = np.concatenate([estimator._noise_std, noise_std])
    are_new = isinstance(estimator.model_.likelihood, RowMeansGaussian)
    are_new |= estimator.mean_function is not None or estimator.candidates is not None
    are_new |= not isinstance(estimator.model_.output_layer, RegressionGPLayer)
    if are_new or any(
        _outgrown(unit, values, weights) for unit, values in zip(units, rows, strict=True)
    ):
        estimator._train(*rows, weights, None, seed=estimator._seed, noise_std=noise_std)
        return
    standard = [unit.transform(values) for unit, values in zip(units, rows, strict=True)]
    data = with_weights(standard[0], standard[1], weights)
    if estimator.model_.output_layer.num_neighbours and len(rows[0]) > policy.EXACT_ROWS:
        estimator.model_ = _with_rows(estimator.model_, data)
    else:
        estimator.model_ = _model_of_runs(estimator, data, len(X), num_steps)
    estimator._limit_draws(estimator.model_)
    estimator._rows = *rows, weights


def _outgrown(unit: Standardiser, values: Array, weights: Array | None) -> bool:
    """Whether a column has another scale by now, in which kernels and noise would start."""
    ratios = standardiser_of_seen(values, weights).scale / unit.scale
    return bool(np.any(np.abs(np.log(ratios)) > np.log(_MOST_GROWTH)))


def _with_rows(old: DeepWishartProcess, data: TrainingData) -> DeepWishartProcess:
    """A copy that conditions on these rows, of which the first are its own; all else stays."""
    layer, precisions = old.output_layer, None
    if layer.precisions is not None:
        known = layer.precisions.numpy()
        precisions = np.append(known, np.ones(np.shape(data[0])[0] - len(known)))
    new = with_rows(old, data, layer.num_neighbours, precisions=precisions)
    new.output_layer.noise_variance = copy.deepcopy(layer.noise_variance)
    return new


def _model_of_runs(
    estimator: DeepWishartEstimator, data: TrainingData, num_new: int, num_steps: int
) -> DeepWishartProcess:
    """Build the model of an estimator for standardised runs, of which the last are new."""
    old = estimator.model_
    layer = old.output_layer
    as_before = {name: getattr(estimator, name) for name in OF_MODELS if name != "inducing"}
    as_before["width"] = old.hidden_layers[0].df if old.hidden_layers else None
    likelihood, kernel = old.likelihood, kernel_name(old.layers[0].kernel)
    is_normal = type(likelihood) in (Gaussian, WarpedGaussian)
    has_one_noise = is_normal and getattr(likelihood.variance, "shape", None) == ()
    noise: Any = "noise_free" if is_noise_free(likelihood) else name_of_likelihood(likelihood)
    is_deep = bool(old.hidden_layers)
    inputs = np.asarray(data[0])
    is_small = isinstance(estimator.kernel, str) and len(inputs) <= _FEW_RUNS
    anew = None
    if has_one_noise and kernel in KERNELS and (is_small or not is_deep):
        # In a single layer as fast as to go on. It may find what the first runs did not tell.
        anew = select_model(
            data,
            depth=len(old.layers),
            kernel=kernel,
            likelihood=noise,
            num_inducing=estimator.num_inducing,
            inducing=estimator.inducing,
            num_steps=_TIMES_ANEW * num_steps if is_deep else None,
            seed=estimator._seed,
            progress=False,
            **as_before,
        ).model
        if not is_deep:
            return anew
    has_own_kernels = not is_deep and isinstance(old.layers[0].kernel, SeparateIndependent)
    most, asked = _MOST_INDUCING, estimator.num_inducing
    if has_own_kernels:
        most = min(len(inputs), _MOST_EXACT)
    if asked != "auto":
        most = asked
    points = np.asarray(old.inducing_variable.Z)
    Z = np.concatenate([points, inputs[-num_new:][: max(0, most - len(points))]])
    new = build_deep_wishart_process(
        data,
        len(old.layers),
        inducing=Z,
        num_inducing=len(Z),
        kernel=[copy.deepcopy(each.kernel) for each in old.layers],
        likelihood=copy.deepcopy(old.likelihood),
        output="regression",
        jitter=layer.jitter,
        seed=estimator._seed,
        **as_before,
    )
    start_at_smaller(new, old)
    if has_own_kernels:
        X, Y, weights = as_weighted(data)
        steps = np.zeros(Y.shape[1]) if is_noise_free(likelihood) else recorded_steps(Y)
        weights = weights_of_evidence(X, Y, steps, weights)
        fit_outputs(new, with_weights(X, Y, weights), steps, _MOST_ITERATIONS)
        draw_kernel_of(new, weights, steps, estimator._seed)
        return new
    for variance in (new.likelihood.variance, new.output_layer.noise_variance):
        # What a likelihood has beside nearest rows is rounding.
        learned = (layer.noise_variance if layer.num_neighbours else variance).numpy()
        learned = learned if variance.shape.rank else learned.mean()
        variance.assign(np.maximum(learned, _LEAST_NOISE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        fit(new, data, num_steps, seed=estimator._seed, progress=False)
    if anew is not None and _log_density(anew) > _log_density(new):
        return anew
    if is_noise_free(new.likelihood) and len(inputs) > policy.FEW_ROWS:
        (X, Y, weights), steps = as_weighted(data), np.zeros(np.shape(data[1])[1])
        trainer = Trainer(X, Y, weights, steps, Choice(), estimator._seed, False, None)
        new = condition(trainer, new, policy.NEIGHBOURS_OF_FIT).model
    return new


# Beside busy processes several threads of OpenBLAS would spin until each has had its turn.
@threadpool_limits.wrap(limits=1, user_api="blas")
def _log_density(model: DeepWishartProcess) -> float:
    """That of each run, predicted from all others."""
    targets = model.output_layer.targets.numpy()
    return float(leave_one_out(model, _DRAWS).log_density(targets).mean())
