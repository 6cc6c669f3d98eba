"""Second implementations in NumPy, written as the papers print them: loops, one matrix at a time.

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
    function: Callable[[np.ndarray], np.ndarray], point: np.ndarray, step: float = 1e-5
) -> np.ndarray:
    """log|det| of the Jacobian of a map between vectors, by central differences.

    :param function: From [..., n] to [..., n].
    :param point: [..., n].
    """
    steps = step * np.eye(point.shape[-1])
    steps = steps.reshape(point.shape[-1], *[1] * (point.ndim - 1), point.shape[-1])
    columns = (function(point + steps) - function(point - steps)) / (2.0 * step)
    return np.linalg.slogdet(np.moveaxis(columns, 0, -1))[1]


def assert_log_determinants(
    bijector: Any,
    rank: int,
    x: np.ndarray,
    y: np.ndarray,
    parse_x: Callable[..., np.ndarray],
    parse_y: Callable[..., np.ndarray],
    *,
    forward_tolerance: float,
    inverse_tolerance: float,
    inverse_step: float = 1e-5,
) -> np.ndarray:
    """Both log-determinants of a bijector are those of finite differences; return the first.

    :param rank: Of x and y, R.
    :param x: Where the forward map is looked at, [..., M, R] or [..., M, M].
    :param y: Where the inverse is.
    :param parse_x: :func:`trapezoid` or :func:`complete`, which makes an x of its free entries.
    :param parse_y: The same for y.
    """
    size = x.shape[-2]

    def forward(entries: np.ndarray) -> np.ndarray:
        return free_entries(bijector.forward(parse_x(entries, size, rank)).numpy(), rank)

    def inverse(entries: np.ndarray) -> np.ndarray:
        return free_entries(bijector.inverse(parse_y(entries, size, rank)).numpy(), rank)

    expected = log_abs_det_jacobian(forward, free_entries(x, rank))
    got = bijector.forward_log_det_jacobian(x)
    np.testing.assert_allclose(got, expected, forward_tolerance, forward_tolerance)
    of_inverse = log_abs_det_jacobian(inverse, free_entries(y, rank), inverse_step)
    got = bijector.inverse_log_det_jacobian(y)
    np.testing.assert_allclose(got, of_inverse, inverse_tolerance, inverse_tolerance)
    return expected


def rank_cholesky(matrix: np.ndarray, rank: int) -> np.ndarray:
    """The lower trapezoid with R columns and a positive diagonal whose outer product this is."""
    size = len(matrix)
    factor = np.zeros((size, rank))
    for j in range(rank):
        factor[j, j] = np.sqrt(matrix[j, j] - factor[j, :j] @ factor[j, :j])
        for i in range(j + 1, size):
            factor[i, j] = (matrix[i, j] - factor[i, :j] @ factor[j, :j]) / factor[j, j]
    return factor


def normal_crps(y: Any, mean: Any, deviation: Any) -> Any:
    """Of normal predictions, in closed form (Gneiting and Raftery, 2007, eq. 21)."""
    z, normal = (y - mean) / deviation, stats.norm
    return deviation * (z * (2.0 * normal.cdf(z) - 1.0) + 2.0 * normal.pdf(z) - np.pi**-0.5)


def log_gamma_density(x: float, concentration: float, rate: float) -> float:
    """log Gamma(x; α, β), by rate. The paper's toy example alone writes it by scale."""
    return stats.gamma.logpdf(x, concentration, scale=1.0 / rate)


def bartlett_log_density(
    t: np.ndarray, concentration: np.ndarray, rate: np.ndarray, loc: np.ndarray, scale: np.ndarray
) -> float:
    """Equation (46), with the 2 T_jj of T_jj² -> T_jj.

    (11b) prints β_j beside α_i: both are of the row's own index.
    """
    size, rank = t.shape
    total = 0.0
    for j in range(rank):
        total += np.log(2.0 * t[j, j]) + log_gamma_density(t[j, j] ** 2, concentration[j], rate[j])
        for i in range(j + 1, size):
            total += stats.norm.logpdf(t[i, j], loc[i, j], scale[i, j])
    return total


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
    total = 0.0
    for j in range(1, rank + 1):
        t_jj = t[j - 1, j - 1]
        alpha, beta = parameters["concentration"][j - 1], parameters["rate"][j - 1]
        total += log_gamma_density(t_jj**2, alpha, beta) - (size - j) * np.log(t_jj)
        for i in range(j + 1, size + 1):
            mu, sigma = parameters["loc"][i - 1, j - 1], parameters["scale"][i - 1, j - 1]
            total += stats.norm.logpdf(t[i - 1, j - 1], mu, sigma)
    return total


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
    """Lower-triangular matrices with a positive diagonal, well conditioned."""
    result = np.tril(0.4 * rng.normal(size=shape), -1)
    return result + np.eye(shape[-1]) * rng.uniform(0.7, 1.5, size=(*shape[:-1], 1))


def random_invertible(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Invertible matrices, well conditioned, not triangular, with determinants of both signs."""
    orthogonal = np.linalg.qr(rng.normal(size=shape))[0]
    return random_tril(rng, *shape) @ orthogonal


def random_trapezoid(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Lower trapezoids with a positive diagonal, well conditioned."""
    size, rank = shape[-2:]
    below = np.tri(size, rank, -1) * 0.4 * rng.normal(size=shape)
    return below + np.eye(size, rank) * rng.uniform(0.7, 1.5, size=(*shape[:-2], 1, rank))


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
