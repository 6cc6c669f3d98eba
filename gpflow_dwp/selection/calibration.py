"""Deviations of what is predicted without noise, as large as rows show that are left out."""

from __future__ import annotations

import functools

import numpy as np
from gpflow.likelihoods import Gaussian
from scipy.stats import norm

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation.predictive_distribution import PredictiveDistribution
from gpflow_dwp.kernels.values import parts_of
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods import WarpedGaussian
from gpflow_dwp.likelihoods.named import is_noise_free
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.neighbours import Index
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.leave_one_out import leave_one_out

__all__ = ["SCALED", "scale_deviations", "scale_kernel", "square_of_scale"]

SCALED = "Deviations are scaled so that 95% intervals hold 95% of the rows that are left out."
"""What is said where deviations are scaled."""

_LEVEL = 0.95
_LEAST_SCALE = 0.1
_DRAWS = 20


def scale_deviations(
    model: DeepWishartProcess,
    rows: Index | None = None,
    left_out: PredictiveDistribution | None = None,
) -> float:
    r"""Scale deviations so that 95% intervals hold 95% of the rows, each predicted from all others.

    It is for one kernel without noise, of more than 120 rows: fewer are too far from each other to
    tell. (Of deep models see :func:`gpflow_dwp.selection.conditioning.condition`.) Kernel and
    nugget times s² leave all means as they are, and make s² w + b of a function's variance, of
    which b is how much the means of draws vary. With errors e of rows that are left out s² is the
    95% quantile of (e² / z² - b) / w, where z is 1.96. Smooth functions get less than the evidence
    has for them, as their nugget is that of rounding, others more (Bachoc, "Cross validation and
    maximum likelihood estimations of hyper-parameters of Gaussian processes with model
    misspecification", 2013, has the mean of e² / w).

    :param model: Whose kernel and likelihood get other variances.
    :param rows: Which are left out; None for all.
    :param left_out: What is predicted of these, if that is known.
    :return: s², or 1 where nothing has changed.
    """
    layer, likelihood = model.output_layer, model.likelihood
    if not (
        isinstance(layer, RegressionGPLayer)
        and len(layer.kernels) == 1
        and is_noise_free(likelihood)
        and len(layer.observed if rows is None else rows) > policy.FEW_ROWS
    ):
        return 1.0
    if left_out is None:
        left_out = leave_one_out(model, min(_DRAWS, model.num_prediction_samples), rows=rows)
    Y, warp = layer.observed.numpy()[slice(None) if rows is None else rows], warp_of(likelihood)
    Y = Y if warp is None else np.asarray(warp.forward(Y))
    nugget = likelihood.variance.numpy()
    square = float(square_of_scale(left_out, Y, nugget))
    if square == 1.0:
        return square
    scale_kernel(layer, np.array(square))
    bound = min(1.0, square) * likelihood.variance_lower_bound
    make = Gaussian if warp is None else functools.partial(WarpedGaussian, warp)
    model.likelihood = make(square * nugget, variance_lower_bound=bound)
    return square


def square_of_scale(
    left_out: PredictiveDistribution, Y: Array, nugget: Array, axis: int | None = None
) -> Array:
    """The square of the scale that deviations get, s²; 1 where it would change next to nothing.

    :param left_out: Predictions of rows from all others, draw by draw.
    :param Y: What was observed, on the scale of functions, [N, P], NaN where it was not.
    :param nugget: What there is of it in variances.
    :param axis: 0 for that of each output, [P]; None for one of all, [].
    """
    errors = Y - left_out.means.mean(0)
    within = np.maximum((left_out.variances - nugget).mean(0), np.finfo(np.float64).tiny)
    needed = ((errors / norm.ppf(0.5 + 0.5 * _LEVEL)) ** 2 - left_out.means.var(0)) / within
    square = np.maximum(np.nanquantile(needed, _LEVEL, axis=axis), _LEAST_SCALE**2)
    return np.where(np.abs(np.log(square)) < 2.0 * policy.LEVEL, 1.0, square)


def scale_kernel(layer: RegressionGPLayer, square: Array) -> None:
    """Scale what deviations of functions come of, so that means stay as they are.

    :param square: By what variances are multiplied, [], or [P] for a kernel of each output.
    """
    for kernel, of_kernel in zip(layer.kernels, np.ravel(square), strict=True):
        for part in parts_of(kernel):
            part.variance.assign(of_kernel * part.variance)
    layer.noise_variance.assign(square * layer.noise_variance)
