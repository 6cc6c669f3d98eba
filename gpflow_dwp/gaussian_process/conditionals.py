"""Gaussian conditionals of rows given a few others, many at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from gpflow_dwp.base import Array
from gpflow_dwp.neighbours import INFINITE, Index

__all__ = ["Conditionals", "condition", "evidence_of_rows"]


class Conditionals(NamedTuple):
    """Of n observations with the covariance A, each time the last one given the others.

    :param precision: Of the last given the others, q, [B]: the last entry of A⁻¹.
    :param residual: What is left of the last less its mean given the others, [B, P].
    :param weights: A⁻¹ u, with u = (0, .., 0, 1), [B, n].
    :param alpha: A⁻¹ Z, [B, n, P].
    """

    precision: Array
    residual: Array
    weights: Array
    alpha: Array

    @property
    def log_density(self) -> Array:
        """Of each last observation given the others, [B, P]."""
        precision = self.precision[:, None]
        return 0.5 * (np.log(precision) - precision * self.residual**2 - np.log(2.0 * np.pi))


def condition(A: Array, Z: Array) -> Conditionals | None:
    r"""Condition the last observation of each batch on the others.

    With v = A⁻¹ u and q = uᵀ v, it has the mean z - vᵀ Z / q given the others, and the variance
    1/q: one factorisation of A gives both, and all that gradients take,

    .. math:: \bar A = w v^T, \qquad \bar Z = -v r^T, \qquad
              w = \sum_p r_p \alpha_p - \tfrac12 \Bigl(\frac P q + \sum_p r_p^2\Bigr) v,

    for the sum of log densities, with the residual r = vᵀ Z / q and α = A⁻¹ Z.

    :param A: Covariances, [B, n, n]; overwritten.
    :param Z: Observations, [B, n, P].
    :return: None where one of A cannot be factorised.
    """
    right = np.concatenate([np.zeros_like(Z[..., :1]), Z], axis=2)
    right[:, -1, 0] = 1.0
    solved = np.empty_like(right)
    for covariance, given, found in zip(A, right, solved, strict=True):
        # What is in order of rows is in that of columns transposed, and is not copied.
        _, found[:], failed = lapack.dposv(covariance.T, given, lower=True, overwrite_a=True)
        if failed:
            return None
    weights, alpha = solved[..., 0], solved[..., 1:]
    precision = weights[:, -1]
    if not np.all(precision > 0.0):  # or it is NaN
        return None
    return Conditionals(precision, alpha[:, -1] / precision[:, None], weights, alpha)


def evidence_of_rows(
    K: Array, diagonal: Array, noise: Array, Z: Array, index: Index
) -> tuple[float, Array, list[Array], Array] | None:
    """Return the log density of some rows given others, summed, and its gradients.

    Others that there are not have infinite noise.

    :param K: Covariances of each row, last, and its others, [B, n, n]; overwritten.
    :param diagonal: Prior variances, of any shape: they add nothing.
    :param noise: Variance of each observation's noise, [N].
    :param Z: Observations, [N, P].
    :param index: Of each row, last, and its others, [B, n]; -1 for none.
    :return: The sum, the negative gradient by Z, those by K and ``diagonal``, and that by log
        noise; None where a covariance cannot be factorised.
    """
    is_there = index >= 0
    noise_of = np.where(is_there, noise[index], INFINITE)
    n = np.arange(index.shape[1])
    K[:, n, n] += noise_of
    solved = condition(K, Z[index])
    if solved is None:
        return None
    q, r, v, alpha = solved
    scale = 0.5 * (Z.shape[1] / q + np.sum(r * r, axis=1))
    w = np.einsum("bnp,bp->bn", alpha, r) - scale[:, None] * v
    of_noise, of_Z = np.zeros_like(noise), np.zeros_like(Z)
    np.add.at(of_noise, index[is_there], (w * v * noise_of)[is_there])
    np.add.at(of_Z, index[is_there], (v[..., None] * r[:, None])[is_there])
    bar = w[:, :, None] * v[:, None]
    return float(solved.log_density.sum()), of_Z, [bar, np.zeros_like(diagonal)], of_noise
