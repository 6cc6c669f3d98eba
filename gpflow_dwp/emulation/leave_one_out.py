"""What an emulator predicts of each of its runs from all others."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.base import Array
from gpflow_dwp.emulation.emulator import as_emulator
from gpflow_dwp.likelihoods import HeteroskedasticGaussian
from gpflow_dwp.optional import import_optional
from gpflow_dwp.selection import leave_one_out as of_model
from gpflow_dwp.selection.leave_one_out import leave_one_out_of_heteroskedastic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LeaveOneOutPredictions", "leave_one_out", "plot_leave_one_out"]

_OUTLYING = 3.0


class LeaveOneOutPredictions(NamedTuple):
    """Predictions of each run from all others, in raw units; [N, Q], or [N] as the runs.

    :param observed: The runs' outputs.
    :param mean: Predicted means.
    :param std: Predicted standard deviations, noise or nugget included.
    :param crps: Continuous ranked probability scores.
    :param log_density: Log densities.
    :param k_hat: Tail of each run's importance ratios, [N]: above 0.7 they cannot be relied on.
        None without smoothing.
    """

    observed: Array
    mean: Array
    std: Array
    crps: Array
    log_density: Array
    k_hat: Array | None = None

    @property
    def standardised_errors(self) -> Array:
        """(observed - mean) / std; 0 of outputs that are constant."""
        return (self.observed - self.mean) / np.maximum(self.std, np.finfo(float).tiny)

    @property
    def outliers(self) -> npt.NDArray[np.int64]:
        """Indices of the runs that are 3 standard deviations or more away, in any output."""
        far = np.abs(self.standardised_errors) >= _OUTLYING
        return np.flatnonzero(far.reshape(len(far), -1).any(axis=1))


def leave_one_out(
    model: Any, *, smoothed: bool = False, num_samples: int = 100
) -> LeaveOneOutPredictions:
    r"""Predict each run from all others, in closed form; parameters stay as they were fitted.

    A single layer is a Gaussian process, for which this is exact. Runs of equal inputs that were
    joined are left out together, and so is their mean predicted. Under an estimator's
    heteroskedastic noise it is rough: the function's posterior loses the row, that of the noise
    stays. A deeper model is one given each draw of its Gram matrices, and these are mixed, see
    :func:`gpflow_dwp.selection.leave_one_out`: with ``smoothed`` as if they were not given run n.

    Of a chain runs are those of its last link: of linked emulators, this link's prediction given
    its inputs; of coarse and fine versions, that from all other fine runs and the draws of coarser
    ones, about a second a run; of a field, patterns and what they leave are those of all runs.

    :param model: A fitted estimator, or a trained model whose output layer is a regression.
    :param smoothed: Whether draws are weighted, by Pareto-smoothed importance ratios.
    :param num_samples: Number of draws, S.
    :raises ValueError: If the model cannot be used, or smoothed of a field or of coarse and fine
        versions.
    """
    emulator = as_emulator(model)
    target = getattr(emulator.estimator, "output_standardiser_", None)
    if emulator.model is None:
        of_chain = model._left_out(num_samples)
        if of_chain is None:
            return leave_one_out(model.links[-1], smoothed=smoothed, num_samples=num_samples)
        if smoothed:
            raise ValueError("smoothed must be False of chains, whose links are not drawn jointly.")
        found, observed = of_chain
    elif target is not None and isinstance(emulator.model.likelihood, HeteroskedasticGaussian):
        inputs, observed, _ = emulator.estimator._rows
        rows = emulator.units.to_model(inputs), target.transform(observed)
        found = leave_one_out_of_heteroskedastic(emulator.model, *rows)
    else:
        found = of_model(emulator.model, num_samples, emulator.seed)
        observed = np.asarray(emulator.units.to_raw(emulator.model.output_layer.observed.numpy()))
    distribution, k_hat = dataclasses.replace(found, target=target), None
    if smoothed:
        distribution, k_hat = distribution.without_own_row(observed)
    scores = distribution.crps(observed), distribution.log_density(observed)
    std, crps, log_density = map(emulator.shaped, (np.sqrt(distribution.variance()), *scores))
    observed, mean = (emulator.shaped(e, are_outputs=True) for e in (observed, distribution.mean()))
    return LeaveOneOutPredictions(observed, mean, std, crps, log_density, k_hat)


def plot_leave_one_out(predictions: LeaveOneOutPredictions, output: int = 0) -> Figure:
    """Show predictions against runs, and standardised errors; outliers are named by their row.

    Bars are two standard deviations, lines of the second panel at 2 and 3.

    :param predictions: What :func:`leave_one_out` returned.
    :param output: Which output, of several.
    """
    parts = predictions.observed, predictions.mean, predictions.std, predictions.standardised_errors
    observed, mean, std, errors = (part.reshape(len(part), -1)[:, output] for part in parts)
    figure = import_optional("matplotlib.figure", "cli").Figure((9.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.errorbar(observed, mean, 2.0 * std, fmt=".", ecolor="0.6", elinewidth=1)
    left.axline((observed.min(), observed.min()), slope=1.0, color="k", linestyle="--")
    left.set(xlabel="run", ylabel="prediction from all other runs")
    right.plot(mean, errors, ".")
    for level in (-_OUTLYING, -2.0, 2.0, _OUTLYING):
        right.axhline(level, color="C1" if abs(level) == _OUTLYING else "0.6", linewidth=1)
    for row in np.flatnonzero(np.abs(errors) >= _OUTLYING):
        right.annotate(str(row), (mean[row], errors[row]), (4, 2), textcoords="offset points")
    right.set(xlabel="prediction from all other runs", ylabel="standardised error")
    return figure
