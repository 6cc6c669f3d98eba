"""Second implementations in NumPy, written as the papers print them, one matrix at a time.

"The paper" is "An Improved Variational Approximate Posterior for the Deep Wishart Process"; it
writes N or P for M. Indices in comments count from 1, as in the paper, indices in code from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

SIZES = [(1, 1), (1, 2), (3, 1), (3, 3), (3, 5), (5, 2), (5, 4)]
"""(M, df) with singular, square and full-rank cases; above full rank df is in exponents only."""


def free_entries(matrix: np.ndarray, rank: int) -> np.ndarray:
    """The entries (i, j) with j <= min(i, R) that describe a matrix of rank R, [..., n]."""
    mask = np.tri(matrix.shape[-2], rank, dtype=bool)
    return matrix[..., :rank][..., mask]


def trapezoid(entries: np.ndarray, size: int, rank: int) -> np.ndarray:
    """The lower trapezoid [..., M, R] with these entries."""
    result = np.zeros((*entries.shape[:-1], size, rank))
    result[..., np.tri(size, rank, dtype=bool)] = entries
    return result


def complete(entries: np.ndarray, size: int, rank: int) -> np.ndarray:
    """The symmetric matrix [..., M, M] of rank R with these entries (j <= min(i, R))."""
    left = trapezoid(entries, size, rank)
    left[..., :rank, :] += np.swapaxes(np.tril(left[..., :rank, :], -1), -1, -2)
    return left @ np.linalg.solve(left[..., :rank, :], np.swapaxes(left, -1, -2))


def log_abs_det_jacobian(
    mapping: Callable[[np.ndarray], Any],
    point: np.ndarray,
    parse: Callable[[np.ndarray, int, int], np.ndarray],
    rank: int,
    step: float = 1e-5,
) -> np.ndarray:
    """log|det| of the Jacobian of a map between free entries, by central differences.

    :param mapping: From matrices of that rank to others.
    :param point: [..., M, R] or [..., M, M].
    :param parse: :func:`trapezoid` or :func:`complete`, which makes a point of its free entries.
    """

    def mapped(entries: np.ndarray) -> np.ndarray:
        return free_entries(mapping(parse(entries, point.shape[-2], rank)).numpy(), rank)

    entries = free_entries(point, rank)
    num = entries.shape[-1]
    steps = step * np.eye(num).reshape(num, *[1] * (entries.ndim - 1), num)
    columns = (mapped(entries + steps) - mapped(entries - steps)) / (2.0 * step)
    return np.linalg.slogdet(np.moveaxis(columns, 0, -1))[1]


def rank_cholesky(matrix: np.ndarray, rank: int) -> np.ndarray:
    """The lower trapezoid with R columns and a positive diagonal whose outer product this is."""
    top = np.linalg.cholesky(matrix[:rank, :rank])
    return np.vstack([top, np.linalg.solve(top, matrix[:rank, rank:]).T])


def normal_crps(y: Any, mean: Any, deviation: Any) -> Any:
    """Of normal predictions, in closed form (Gneiting and Raftery, 2007, eq. 21)."""
    z, normal = (y - mean) / deviation, stats.norm
    return deviation * (z * (2.0 * normal.cdf(z) - 1.0) + 2.0 * normal.pdf(z) - np.pi**-0.5)


def factor_log_density(t: np.ndarray, parameters: dict[str, np.ndarray]) -> float:
    """Of T_jj², Gamma(α_j, β_j) by rate, and of T_ij below the diagonal, N(μ_ij, σ_ij²).

    The paper's toy example alone writes Gamma by scale. (11b) prints β_j beside α_i: both are of
    the row's own index.
    """
    below = np.tril_indices(len(t), -1, t.shape[1])
    gamma = stats.gamma(parameters["concentration"], scale=1.0 / parameters["rate"])
    normal = stats.norm(parameters["loc"][below], parameters["scale"][below])
    return gamma.logpdf(np.diag(t) ** 2).sum() + normal.logpdf(t[below]).sum()


def bartlett_log_density(t: np.ndarray, **parameters: np.ndarray) -> float:
    """Equation (46), with the 2 T_jj of T_jj² -> T_jj."""
    return factor_log_density(t, parameters) + np.log(2.0 * np.diag(t)).sum()


def singular_wishart_log_density(g: np.ndarray, s: np.ndarray, df: int) -> float:
    """Equation (30), Srivastava's. The multivariate gamma function is of order R, not M."""
    size = len(g)
    rank = min(df, size)
    return (
        0.5 * df * (rank - size) * np.log(np.pi)
        - 0.5 * df * size * np.log(2.0)
        - 0.5 * df * np.linalg.slogdet(s)[1]
        - special.multigammaln(0.5 * df, rank)
        + 0.5 * (df - size - 1) * np.linalg.slogdet(g[:rank, :rank])[1]
        - 0.5 * np.trace(np.linalg.solve(s, g))
    )


def _log_product_over_factor(t: np.ndarray, parameters: dict[str, np.ndarray]) -> float:
    # Π_j Gamma(T_jj²; α_j, β_j) / T_jj^(M - j) Π_{i > j} N(T_ij; μ_ij, σ_ij²), in (12) to (14)
    size, rank = t.shape
    powers = size - np.arange(1, rank + 1)
    return factor_log_density(t, parameters) - powers @ np.log(np.diag(t))


def gw_log_density(
    g: np.ndarray, df: int, scale_tril: np.ndarray, **parameters: np.ndarray
) -> float:
    """Equation (12). Both products hold powers of L; ν in min(j, ν) is not ν̃."""
    size, diagonal = len(g), np.log(np.diag(scale_tril))
    rank = min(df, size)
    # With L lower triangular, the factor of G is L T.
    t = np.linalg.solve(scale_tril, rank_cholesky(g, rank))
    total = _log_product_over_factor(t, parameters)
    total -= sum(min(j, df) * diagonal[j - 1] for j in range(1, size + 1))
    return total - sum((size - j + 1) * diagonal[j - 1] for j in range(1, rank + 1))


def agw_log_density(
    g: np.ndarray, df: int, row_mixing: np.ndarray, **parameters: np.ndarray
) -> float:
    """Equation (13). |A|^ν is a determinant's absolute value, and ν stays ν where ν > M."""
    return abgw_log_density(g, df, row_mixing, np.eye(min(df, len(g))), **parameters)


def abgw_log_density(
    g: np.ndarray,
    df: int,
    row_mixing: np.ndarray,
    column_mixing_tril: np.ndarray,
    **parameters: np.ndarray,
) -> float:
    """Equation (14). Its T is not the factor of C, which is T B; B is R x R, also for ν > M."""
    size = len(g)
    rank = min(df, size)
    c = np.linalg.solve(row_mixing, np.linalg.solve(row_mixing, g).T)
    t = rank_cholesky(c, rank) @ np.linalg.inv(column_mixing_tril)
    log_minor_g = np.linalg.slogdet(g[:rank, :rank])[1]
    log_minor_c = np.linalg.slogdet(c[:rank, :rank])[1]
    total = _log_product_over_factor(t, parameters)
    total += 0.5 * (df - size - 1) * (log_minor_g - log_minor_c)
    total -= df * np.linalg.slogdet(row_mixing)[1]
    for j in range(1, rank + 1):
        total -= 2.0 * (size - j + 1) * np.log(column_mixing_tril[j - 1, j - 1])
    return total


def gram(t: np.ndarray, row_mixing: np.ndarray, column_mixing_tril: np.ndarray) -> np.ndarray:
    """(A T B)(A T B)ᵀ."""
    factor = row_mixing @ t @ column_mixing_tril
    return factor @ np.swapaxes(factor, -1, -2)


def random_tril(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Lower triangles or trapezoids with a positive diagonal, well conditioned."""
    size, rank = shape[-2:]
    below = np.tri(size, rank, -1) * 0.4 * rng.normal(size=shape)
    return below + np.eye(size, rank) * rng.uniform(0.7, 1.5, size=(*shape[:-2], 1, rank))


def random_invertible(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Invertible matrices, well conditioned, not triangular, with determinants of both signs."""
    orthogonal = np.linalg.qr(rng.normal(size=shape))[0]
    return random_tril(rng, *shape) @ orthogonal


def random_bartlett(
    rng: np.random.Generator, size: int, df: int, batch: tuple[int, ...] = ()
) -> dict[str, np.ndarray]:
    """Parameters of a generalised Bartlett factor: no two alike, garbage where it is ignored."""
    rank = min(df, size)
    ignored = ~np.tri(size, rank, -1, dtype=bool)
    parameters = {
        "concentration": rng.uniform(0.8, 4.0, size=(*batch, rank)),
        "rate": rng.uniform(0.3, 2.0, size=(*batch, rank)),
        "loc": rng.normal(size=(*batch, size, rank)),
        "scale": rng.uniform(0.3, 1.5, size=(*batch, size, rank)),
    }
    parameters["loc"][..., ignored] = 1e3
    parameters["scale"][..., ignored] = -1.0
    return parameters


def wishart_bartlett(size: int, df: int) -> dict[str, np.ndarray]:
    """The parameters with which the factor is that of a Wishart, (32): the index is the row's."""
    rank = min(df, size)
    return {
        "concentration": 0.5 * (df - np.arange(rank)),
        "rate": np.full(rank, 0.5),
        "loc": np.zeros((size, rank)),
        "scale": np.ones((size, rank)),
    }


def random_parameters(
    name: str, rng: np.random.Generator, size: int, df: int, batch: tuple[int, ...] = ()
) -> dict[str, np.ndarray]:
    """All parameters but an integer df of the distribution of that name."""
    rank = min(df, size)
    if name == "InverseWishart":
        degrees = rng.uniform(size + 3.5, size + 6.0, size=batch)
        return {"df": degrees, "scale_tril": random_tril(rng, *batch, size, size)}
    parameters = {}
    if name in ("SingularWishart", "GeneralisedSingularWishart"):
        parameters["scale_tril"] = random_tril(rng, *batch, size, size)
    if name in ("AGeneralisedSingularWishart", "ABGeneralisedSingularWishart"):
        parameters["row_mixing"] = random_invertible(rng, *batch, size, size)
    if name == "ABGeneralisedSingularWishart":
        parameters["column_mixing_tril"] = random_tril(rng, *batch, rank, rank)
    if name != "SingularWishart":
        parameters.update(random_bartlett(rng, size, df, batch))
    return parameters
