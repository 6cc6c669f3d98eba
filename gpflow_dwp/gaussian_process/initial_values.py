"""Where fits start: peaks of the evidence over lengthscales, with the best variances at each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.gaussian_process.kernel_shapes import Covariances

__all__ = ["Peak", "find_peaks"]


class Peak(NamedTuple):
    """A place where the evidence is higher than at neighbouring lengthscales.

    :param nats: The evidence, up to a constant.
    :param scale: By what lengthscales are multiplied.
    :param signal: The variance of the signal.
    :param ratio: That of the noise by it.
    """

    nats: float
    scale: float
    signal: float
    ratio: float


def find_peaks(
    covariances: Covariances,
    Y: Array,
    weights: Array,
    scales: Array,
    ratios: Array,
    pooled: float = 0.0,
) -> list[Peak]:
    """Find peaks over lengthscales that are scaled by one factor, highest first.

    For a scale and a ratio ρ of noise to signal, with W^½ K W^½ = U diag(s) Uᵀ, the best signal
    variance is the sum of (Uᵀ W^½ y)²/(s + ρ) by that of the weights.

    :param covariances: Of the inputs with themselves.
    :param Y: Observations, [N, P].
    :param weights: How often each row counts, w, [N].
    :param scales: Factors, ascending.
    :param ratios: ρ that are tried; of those that explain as much the first is taken.
    :param pooled: Of rows that are means the variance of observations around these, summed over
        outputs.
    """
    roots, total, P = np.sqrt(weights), weights.sum(), Y.shape[1]
    spare = total - len(Y)
    Y = Y * roots[:, None]
    vector, profile = covariances.start(), []
    for scale in scales:
        K, _ = covariances.blocks(vector + np.log(scale) * covariances.scanned)
        values, vectors = np.linalg.eigh(roots[:, None] * K * roots)
        spectrum = np.maximum(values, 0.0)[:, None] + ratios
        explained = np.square(vectors.T @ Y)[:, None] / spectrum[..., None]
        signal = (np.sum(explained, axis=(0, 2)) + spare * pooled / ratios) / (total * P)
        nats = total * np.log(signal) + np.log(spectrum).sum(0) + spare * np.log(ratios)
        nats *= -0.5 * P
        best = nats.argmax()
        profile.append(Peak(nats[best], scale, signal[best], ratios[best]))
    nats = np.array([each.nats for each in profile])
    padded = np.concatenate([[-np.inf], nats, [-np.inf]])
    peaks = np.flatnonzero((nats >= padded[:-2]) & (nats >= padded[2:]))
    return [profile[peak] for peak in sorted(peaks, key=lambda peak: -nats[peak])]
