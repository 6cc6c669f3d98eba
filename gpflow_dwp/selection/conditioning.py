"""Deep models that predict from the rows nearest to each point, with as much noise as pays."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.kernels import SeparateIndependent

from gpflow_dwp.base import Array, TrainingData
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.exceptions import CholeskyError
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods.named import MOST_NUGGET, is_noise_free
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.neighbours import Index
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.calibration import SCALED, scale_kernel, square_of_scale
from gpflow_dwp.selection.leave_one_out import leave_one_out
from gpflow_dwp.selection.scores import RowScores, is_ahead, no_worse
from gpflow_dwp.selection.trainer import Trainer
from gpflow_dwp.validation import as_weighted

__all__ = ["Conditioned", "condition", "with_rows"]

# For scores, and for predictions at least half as many.
_DRAWS = 20
# Their rows' features at inducing points have to fit into memory.
_MOST_ENTRIES = 5e7
# By what the noise that a deep model has learned is multiplied: what nearest rows tell it lacked.
_SHARES_OF_NOISE = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


class Conditioned(NamedTuple):
    """A deep model that predicts from nearest rows.

    :param model: The model.
    :param scores: Of the rows that were left out.
    :param elbo: Its bound, before deviations were scaled.
    :param scaled: Whether they are, in words; none where not.
    """

    model: DeepWishartProcess
    scores: RowScores
    elbo: float
    scaled: str


def condition(
    trainer: Trainer, model: DeepWishartProcess, num_neighbours: int, rows: Index | None = None
) -> Conditioned:
    r"""Condition a trained model on all rows, by inducing points and each point's nearest rows.

    The noise that its output layer has learned is made less, as long as rows are predicted better
    from all others: it was of what inducing points and few rows do not resolve. Where there is no
    noise in truth all that is left of it belongs to the function, so that the likelihood's is no
    more than rounding, and deviations are scaled where that predicts better: see
    :func:`gpflow_dwp.selection.calibration.scale_deviations`.

    :param trainer: Of all rows.
    :param model: Deep, with a :class:`RegressionGPLayer` of some of them; it stays as it is.
    :param num_neighbours: How many rows are near, m.
    :param rows: Which are left out; None for all.
    """
    model = _of_all(trainer, model, num_neighbours)
    likelihood, has_noise = model.likelihood, not is_noise_free(model.likelihood)
    learned = np.asarray(tf.convert_to_tensor(likelihood.variance))
    floor = 2.0 * likelihood.variance_lower_bound
    Y = trainer.Y if rows is None else trainer.Y[rows]
    axis = None if len(model.output_layer.kernels) == 1 else 0

    def tried(share: float) -> tuple[RowScores, Array, Array]:
        """Scores with a share of the noise, that noise, and the square of the scale."""
        noise = np.maximum(share * learned, floor)
        _set_noise(model, noise)
        likelihood.variance.assign(noise if has_noise else np.minimum(noise, MOST_NUGGET))
        found = leave_one_out(model, min(_DRAWS, model.num_prediction_samples), rows=rows)
        scores = RowScores.of(found, Y, trainer.steps)
        if not has_noise and len(Y) > policy.FEW_ROWS:
            nugget = likelihood.variance.numpy()
            square = square_of_scale(found, Y, nugget, axis)
            within = square * (found.variances - nugget) + nugget
            scaled = PredictiveDistribution.of_components(likelihood, found.means, within)
            of_scaled = RowScores.of(scaled, Y, trainer.steps)
            if is_ahead(of_scaled, scores):  # not where draws differ by more than deviations
                return of_scaled, noise, square
        return scores, noise, np.array(1.0)

    first, *others = _SHARES_OF_NOISE
    scores, noise, square = tried(first)
    for share in others:
        try:
            other = tried(share)
        except CholeskyError:
            break
        if not (is_ahead(other[0], scores) and no_worse(other[0].crps, scores.crps)):
            break
        scores, noise, square = other
    _set_noise(model, noise)
    elbo = trainer.estimate_bound(model)
    if not has_noise:
        likelihood.variance.assign(np.minimum(noise, MOST_NUGGET))
    is_scaled = bool((square != 1.0).any())
    if is_scaled:
        scale_kernel(model.output_layer, square)
    return Conditioned(model, scores, elbo, SCALED * is_scaled)


def _of_all(trainer: Trainer, model: DeepWishartProcess, num_neighbours: int) -> DeepWishartProcess:
    """A copy with all rows; of several outputs each has a kernel and noise of its own."""
    layer, num_outputs, changes = model.output_layer, trainer.Y.shape[1], {}
    learned = np.asarray(tf.convert_to_tensor(model.likelihood.variance))
    noise = learned.item() if num_outputs == 1 else np.broadcast_to(learned, [num_outputs])
    if num_outputs > 1 and len(layer.kernels) == 1:
        copies = [copy.deepcopy(layer.kernel) for _ in range(num_outputs)]
        changes["kernel"] = SeparateIndependent(copies)
    model = with_rows(model, trainer.rows(), num_neighbours, noise_variance=noise, **changes)
    entries = model.num_data * layer.num_inducing * num_outputs
    most = max(_DRAWS // 2, int(_MOST_ENTRIES / entries))
    model.num_prediction_samples = min(model.num_prediction_samples, most)
    return model


def with_rows(
    model: DeepWishartProcess, data: TrainingData, num_neighbours: int, **changes: Any
) -> DeepWishartProcess:
    """A copy that is a regression on other rows.

    :param num_neighbours: How many of these are near.
    :param changes: Arguments of its output layer that are not those of the one that is there.
    """
    model, (X, Y, weights) = copy.deepcopy(model), as_weighted(data)
    layer = model.output_layer
    kept = {"kernel": layer.kernel, "mean_function": layer.mean_function}
    output = RegressionGPLayer(
        num_inducing=layer.num_inducing,
        inputs=X,
        targets=Y,
        weights=weights,
        jitter=getattr(layer, "jitter", None),
        num_neighbours=num_neighbours,
        **(kept | changes),
    )
    model.layers, model.num_data = [*model.hidden_layers, output], len(X)
    return model


def _set_noise(model: DeepWishartProcess, variance: Array) -> None:
    model.likelihood.variance.assign(variance)
    of_layer = model.output_layer.noise_variance
    of_layer.assign(np.broadcast_to(variance, of_layer.shape))
