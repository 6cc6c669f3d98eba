"""What chains of emulators predict of each run from all others."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.selection import leave_one_out

if TYPE_CHECKING:
    from gpflow_dwp.estimator.chained import ChainedEmulator


def left_out_of_finest(
    chain: ChainedEmulator, num_samples: int
) -> tuple[PredictiveDistribution, Array]:
    """Predict each run of the finest version from its others, and from all runs of coarser ones.

    :return: The distributions, in standardised units, and the runs in raw ones, [N, P].
    """
    links = chain._links_of(chain._stages[-1])
    regressor = links[0].regressor
    layer: Any = regressor.model_.output_layer
    X = regressor.input_standardiser_.inverse_transform(layer.inputs.numpy())
    X = X[:, : chain.n_features_in_]
    copies = [each._replace(regressor=copy.copy(each.regressor)) for each in links]
    means, variances = [], []
    for row in range(len(X)):
        for link, other in zip(links, copies, strict=True):  # parameters stay
            seen = link.regressor.model_.output_layer
            parts = seen.inputs, seen.observed, seen.weights
            data: Any = [np.delete(np.asarray(e), row, axis=0) for e in parts if e is not None]
            other.regressor.model_.set_data(tuple(data))
        posterior = chain._draws(num_samples, chain._seed, copies)
        found = PredictiveDistribution.of(posterior, X[[row]])
        means.append(found.means)
        variances.append(found.variances)
        if layer.weights is not None:  # the run is a mean
            share = 1.0 / layer.weights.numpy()[row] - 1.0
            variances[-1] = found.variances + share * np.asarray(posterior.likelihood.variance)
    observed = regressor.output_standardiser_.inverse_transform(layer.observed.numpy())
    joined = np.concatenate(means, axis=1), np.concatenate(variances, axis=1)
    return replace(found, means=joined[0], variances=joined[1]), observed


def left_out_of_field(
    chain: ChainedEmulator, num_samples: int
) -> tuple[PredictiveDistribution, Array]:
    """Predict each run of a field, likewise; the patterns are those of all runs."""
    field: Any = chain._field
    regressor, (_, basis, variance, _, rows) = chain.links[0], field
    layer, units = regressor.model_.output_layer, regressor.output_standardiser_
    found = leave_one_out(regressor.model_, num_samples, chain._seed)
    if found.warp is not None or found.weights is not None:
        found = PredictiveDistribution(found.mean()[None], found.variance()[None])
    if layer.weights is not None:
        joined = RowMeansGaussian.of_replicates(regressor._rows[0], rows)
        rows = rows if joined is None else joined[1][1]
        variance = variance / layer.weights.numpy()[:, None]
    means = units.inverse_transform(found.means) @ basis
    variances = (found.variances * np.square(units.scale)) @ np.square(basis) + variance
    return PredictiveDistribution(means, variances), rows
