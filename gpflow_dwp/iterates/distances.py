"""How far one Gaussian is from another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.linalg

__all__ = ["relative_frobenius_distance", "wasserstein_distance"]


def relative_frobenius_distance(truth: npt.ArrayLike, estimate: npt.ArrayLike) -> float:
    """Return ‖truth - estimate‖ / ‖truth‖ in the Frobenius norm.

    :param truth: A vector or matrix, not all zero.
    :param estimate: Another one of the same shape.
    :raises ValueError: If the shapes differ, or ``truth`` is zero.
    """
    truth, estimate = np.asarray(truth, np.float64), np.asarray(estimate, np.float64)
    if truth.shape != estimate.shape:
        raise ValueError(f"estimate must have shape {truth.shape}, as truth, got {estimate.shape}.")
    norm = np.linalg.norm(truth)
    if norm == 0.0:
        raise ValueError("truth must not be zero.")
    return float(np.linalg.norm(truth - estimate) / norm)


def wasserstein_distance(
    first: tuple[npt.ArrayLike, npt.ArrayLike], second: tuple[npt.ArrayLike, npt.ArrayLike]
) -> float:
    """Return the 2-Wasserstein distance between two Gaussians.

    Its square is ‖m₁ - m₂‖² + tr(C₁ + C₂ - 2 (C₁^½ C₂ C₁^½)^½) (Givens and Shortt, 1984).

    :param first: Mean [D] and covariance [D, D].
    :param second: Mean and covariance of the same shapes.
    :raises ValueError: If the shapes do not fit, or the first covariance is not positive definite.
    """
    (mean, cov), (other_mean, other_cov) = (
        (np.asarray(m, np.float64), np.asarray(c, np.float64)) for m, c in (first, second)
    )
    size = mean.size
    if mean.shape != (size,) or other_mean.shape != (size,):
        raise ValueError(
            f"means must be vectors of one length, got {mean.shape}, {other_mean.shape}."
        )
    if cov.shape != (size, size) or other_cov.shape != (size, size):
        raise ValueError(
            f"covariances must have shape {(size, size)}, got {cov.shape}, {other_cov.shape}."
        )
    try:
        root = scipy.linalg.cholesky(cov, lower=True)
    except scipy.linalg.LinAlgError as error:
        raise ValueError("first must have a positive definite covariance.") from error
    # Lᵀ C₂ L has the eigenvalues of C₁^½ C₂ C₁^½.
    eigenvalues = scipy.linalg.eigvalsh(root.T @ other_cov @ root)
    overlap = np.sqrt(np.maximum(eigenvalues, 0.0)).sum()
    square = np.sum((mean - other_mean) ** 2) + np.trace(cov) + np.trace(other_cov) - 2.0 * overlap
    return float(np.sqrt(max(square, 0.0)))
