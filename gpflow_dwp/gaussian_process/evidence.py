"""The evidence of Gaussian processes, exact and sparse, with its gradient, by LAPACK."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import gpflow
import numpy as np
import numpy.typing as npt
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian
from scipy.linalg import blas, lapack, solve_triangular
from scipy.special import digamma, gammaln

from gpflow_dwp.base import Array
from gpflow_dwp.gaussian_process.conditionals import evidence_of_rows
from gpflow_dwp.gaussian_process.covariances import assigned, covariances_of
from gpflow_dwp.kernels.values import Parts
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedStudentT
from gpflow_dwp.likelihoods.named import MOST_NUGGET, is_noise_free
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.neighbours import Index

__all__ = ["Evidence", "solve"]

# Value, α, gradients by the kernel's matrices and diagonal, and by the logarithm of the noise.
_Solved = tuple[float, Array, list[Array], Array]

# What observations of unit variance can justify. Of the warp: ξ, log λ, ε, log δ, μ.
_LOG_NOISE = np.log([1e-10, 4.0])
# Where there is none, of more rows: these are so near each other that rounding takes over.
_MOST_ROWS, _LOG_NUGGET_OF_MORE = 500, math.log(1e-8)
_LOG_DF = np.log([1e-2, 1e3])
_LOG_PRECISION = np.log([1e-8, 1e2])
_WARP_LIMITS = np.array([[-20, 20], [-33, 5], [-10, 10], [np.log(0.02), np.log(5.0)], [-50, 50]])
_WARP_DEVIATIONS = np.array([2.0, 1.0, 1.0, 1.0, np.inf])[:, None]


@dataclasses.dataclass
class Evidence:
    r"""The logarithm of p(Y), with priors of the warp, as a function of a vector of parameters.

    .. math:: \log p(Y) = \sum_p \log \mathcal N(g(y_p); 0, K + \operatorname{diag}(\sigma^2 / w_n
              \lambda_n)) + \sum_{np} w_n \log g'(y_{np}) + \ldots

    with weights w, with λ = 1 under Gaussian noise, and under Student's the bound with the best
    Gamma posterior of each λ that has a given mean, which is what is learned. An observation that
    was recorded to a step h counts with the probability of its cell: its Jacobian is

    .. math:: \log(\Delta / h) - \tfrac12 \log(1 + \Delta^2 / 12 \sigma^2), \qquad
              \Delta = g(y + h/2) - g(y - h/2),

    as a cell that is wide beside the noise holds no more than all of the probability (1.38 times as
    much in this approximation). With α = A⁻¹ Z the gradient is Ā = ½ (α αᵀ - P A⁻¹) and Z̄ = -α
    (Rasmussen and Williams, 2006, equation 5.9). With inducing inputs it is the bound of Titsias
    (2009), in which K is Q = Kfu Kuu⁻¹ Kuf, less the trace of what Q lacks by twice the noise.

    :param X: Inputs, [N, D].
    :param Y: Observations, [N, P].
    :param weights: w, [N], positive.
    :param steps: h of each column, [P], 0 for none.
    :param kernel: Read and written; values are replaced.
    :param likelihood: With one noise variance.
    :param precisions: λ under Student's noise, [N]; else None.
    :param jitter: Relative jitter of the layer this stands for: what it takes from the bound, else
        noise could be less than the jitter.
    :param inducing_inputs: Z, [M, D], which stay; None for the exact process.
    :param neighbours: For Vecchia's approximation ("Estimation and model identification for
        continuous spatial processes", 1988): the sum over B rows of their log densities given m
        others each. Their indices, [B, m + 1], the row's own last, and -1 for none; None for the
        exact process. It is the evidence where all rows are given all that precede them.
    """

    X: Array
    Y: Array
    weights: Array
    steps: Array
    kernel: Kernel | Parts
    likelihood: Gaussian
    precisions: Array | None = None
    jitter: float = 0.0
    inducing_inputs: Array | None = None
    neighbours: Index | None = None

    def __post_init__(self) -> None:
        X, Z, counts = self.X, self.inducing_inputs, np.ones(len(self.X))
        if self.neighbours is not None:
            X = X[self.neighbours]
            counts = np.bincount(self.neighbours[:, -1], minlength=len(self.X)).astype(np.float64)
        self._counts = counts  # how often each row's own density counts
        self._covariances = covariances_of(self.kernel, [(X, X)] if Z is None else [(Z, Z), (Z, X)])
        self._size = len(self._covariances.start())
        warp = warp_of(self.likelihood)
        self._warp = warp if isinstance(warp, SinhArcsinh) and warp.trainable_parameters else None
        self._lambda = np.ones(len(self.X)) if self.precisions is None else self.precisions
        variance = self.likelihood.variance
        if not isinstance(variance, gpflow.Parameter):
            raise ValueError("likelihood must have one noise variance, as a parameter.")
        self._noise = variance
        self._has_tails = isinstance(self.likelihood, WarpedStudentT)

    def start(self) -> Array:
        """The vector of the present values of kernel, likelihood and precisions."""
        parts = [self._covariances.start(), np.log([float(np.max(self._noise.numpy()))])]
        if self._warp is not None:
            w = self._warp
            rows = (w.location, np.log(w.scale), w.skewness, np.log(w.tailweight), w.shift)
            parts.append(np.stack([np.asarray(row) for row in rows]).reshape(-1))
        if isinstance(self.likelihood, WarpedStudentT):
            parts += [np.log([float(self.likelihood.df.numpy()) - 2.0]), np.log(self._lambda)]
        low, high = self.limits().T
        vector = np.clip(np.concatenate(parts), low, high)
        if self.inducing_inputs is None:
            return vector
        # What few inducing inputs do not explain is noise at first, or all would end as noise.
        noise = np.eye(len(vector))[self._size]
        tries = [np.clip(vector + shift * noise, low, high) for shift in range(5)]
        return max(tries, key=lambda each: self(each)[0])

    def assign(self, vector: Array) -> None:
        """Give kernel, likelihood and precisions the values of a vector."""
        noise, warp, df, precisions = self._split(vector)
        self.kernel = assigned(self.kernel, self._covariances.values(vector[: self._size]))
        floor = self.likelihood.variance_lower_bound
        self._noise.assign(np.full(self._noise.shape, max(noise, floor * (1.0 + 1e-6))))
        if self._warp is not None and warp is not None:
            location, log_scale, skewness, log_tailweight, shift = warp
            self._warp.location.assign(location)
            self._warp.scale.assign(np.exp(log_scale))
            self._warp.skewness.assign(skewness)
            self._warp.tailweight.assign(np.exp(log_tailweight))
            self._warp.shift.assign(shift)
        if self._has_tails:
            self.likelihood.df.assign(df)
            self.precisions = precisions

    def limits(self) -> Array:
        """Lower and upper limit of each entry of a vector, [K, 2]."""
        floor = self.likelihood.variance_lower_bound
        noise = np.maximum(_LOG_NOISE, np.log(floor * (1.0 + 1e-6)))
        if is_noise_free(self.likelihood):
            noise[1] = math.log(MOST_NUGGET)
            if len(self.X) > _MOST_ROWS:
                noise[0] = max(noise[0], _LOG_NUGGET_OF_MORE)
        if not self._noise.trainable:
            noise[:] = math.log(float(self._noise.numpy()))
        parts = [self._covariances.limits(), [noise]]
        if self._warp is not None:
            parts.append(np.repeat(_WARP_LIMITS, self.Y.shape[1], axis=0).tolist())
        if self._has_tails:
            parts += [[_LOG_DF], [_LOG_PRECISION] * len(self.X)]
        return np.concatenate([np.asarray(part, np.float64) for part in parts])

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """The evidence with its priors, and its gradient; -inf where K cannot be factorised."""
        w, P, c = self.weights, self.Y.shape[1], self._counts
        noise, warp, df, precisions = self._split(vector)
        row_noise = noise / (w * precisions)
        Z, Z_by_warp = (self.Y, self.Y) if warp is None else _warped(warp, self.Y)
        *matrices, diagonal = self._covariances.blocks(vector[: self._size])
        if self.neighbours is not None:
            solved = evidence_of_rows(matrices[0], diagonal, row_noise, Z, self.neighbours)
        elif self.inducing_inputs is None:
            solved = _exact(matrices[0], diagonal, row_noise, Z)
        else:
            solved = _sparse(matrices[0], matrices[1], diagonal, row_noise, Z, self.jitter)
        if solved is None:
            return -np.inf, np.zeros_like(vector)
        value, alpha, bars, by_row_noise = solved
        penalty = 0.5 * self.jitter * P * c * diagonal.mean() / row_noise
        value -= penalty.sum()
        bars[-1] = bars[-1] - penalty.sum() / diagonal.sum()
        by_row_noise = by_row_noise + penalty
        value += np.sum(0.5 * P * c * ((1.0 - w) * np.log(2.0 * np.pi * noise) - np.log(w)))
        by_noise = by_row_noise.sum() + 0.5 * P * np.sum(c * (1.0 - w))
        cw = c * w
        if isinstance(self.likelihood, RowMeansGaussian):
            pooled = 0.5 * np.sum(cw - c) * self.likelihood.pooled_variance.sum() / noise
            value += self.likelihood.constant - pooled
            by_noise += pooled
        log_prior, by_kernel = self._covariances.log_prior(vector[: self._size])
        value += log_prior
        parts: list[npt.ArrayLike] = [self._covariances.gradient(bars) + by_kernel, 0.0]
        if warp is None:
            ratio = self.steps**2 / (12.0 * noise)
            value -= 0.5 * cw.sum() * np.log1p(ratio).sum()
            by_noise += 0.5 * cw.sum() * (ratio / (1.0 + ratio)).sum()
        else:
            factor, by_warp, of_noise = _log_jacobian(warp, self.Y, self.steps, noise)
            by_noise += np.sum(cw[:, None] * of_noise)
            by_warp = np.sum(cw[:, None] * by_warp - alpha * Z_by_warp, axis=1)
            value += np.sum(cw[:, None] * factor) + _log_prior(warp)
            parts.append((by_warp - warp / _WARP_DEVIATIONS**2).reshape(-1))
        if self._has_tails:
            factor, by_precision, by_df = _precision_factor(precisions, df)
            value += P * np.sum(cw * factor - 0.5 * c * np.log(precisions))
            by_precisions = P * (cw * by_precision - 0.5 * c) - by_row_noise
            parts += [[P * np.sum(cw * by_df)], by_precisions]
        parts[1] = [by_noise]
        return float(value), np.concatenate([np.asarray(part, np.float64) for part in parts])

    def logs_of_kernel(self, vector: Array) -> Array:
        """Logarithms of lengthscales and variance, of one part after the other, [K]."""
        parts: Any = self._covariances.values(vector[: self._size])
        logs = [np.log(value).ravel() for p in parts for value in (p.lengthscales, p.variance)]
        return np.concatenate(logs)

    def log_prior(self, vector: Array) -> float:
        """The log density of the kernel's and the warp's parameters, up to a constant."""
        warp, of_kernel = self._split(vector)[1], self._covariances.log_prior(vector[: self._size])
        return of_kernel[0] + (0.0 if warp is None else _log_prior(warp))

    def _split(self, vector: Array) -> tuple[float, Array | None, float, Array]:
        P, noise, rest = self.Y.shape[1], np.exp(vector[self._size]), vector[self._size + 1 :]
        warp = None
        if self._warp is not None:
            warp, rest = rest[: 5 * P].reshape(5, P), rest[5 * P :]
        if not self._has_tails:
            return noise, warp, np.inf, np.ones(len(self.X))
        return noise, warp, 2.0 + np.exp(rest[0]), np.exp(rest[1:])


def _exact(K: Array, diagonal: Array, noise: Array, Z: Array) -> _Solved | None:
    """Σ_p log N(z_p; 0, K + diag(noise)), and its gradients."""
    solved = solve(K, noise, Z)
    if solved is None:
        return None
    value, alpha, inverse = solved
    bar = blas.dsyrk(0.5, alpha, beta=-0.5 * Z.shape[1], c=inverse, lower=True, overwrite_c=False)
    bar += np.tril(bar, -1).T
    return value, alpha, [bar, np.zeros_like(diagonal)], np.diagonal(bar) * noise


def _sparse(
    Kuu: Array, Kuf: Array, diagonal: Array, noise: Array, Z: Array, jitter: float
) -> _Solved | None:
    r"""The bound of Titsias (2009), and its gradients.

    With Kuu = L Lᵀ, A = L⁻¹ Kuf D^{-1/2} and B = I + A Aᵀ, D being the noise, the inverse of
    Q + D is D^{-1/2} (I - Aᵀ B⁻¹ A) D^{-1/2}; Kuf has the gradient
    Kuu⁻¹ Kuf α αᵀ + P L⁻ᵀ (I - B⁻¹) A D^{-1/2}.
    """
    P, M, root = Z.shape[1], len(Kuu), np.sqrt(noise)
    try:
        L = np.linalg.cholesky(Kuu + jitter * np.mean(np.diagonal(Kuu)) * np.eye(M))
        A = _solve(L, Kuf) / root
        B = np.eye(M) + A @ A.T
        factor = np.linalg.cholesky(B)
    except np.linalg.LinAlgError:
        return None
    U, scaled = _solve(factor, A), Z / root[:, None]
    c = U @ scaled
    alpha = (scaled - U.T @ c) / root[:, None]
    explained = noise * np.sum(A * A, axis=0)
    lacking = diagonal - explained
    log_det = np.sum(np.log(noise)) + 2.0 * np.sum(np.log(np.diagonal(factor)))
    value = -0.5 * (P * (len(Z) * np.log(2.0 * np.pi) + log_det) + np.sum(scaled**2) - np.sum(c**2))
    value -= 0.5 * P * np.sum(lacking / noise)
    T = _solve(L, (A * root) @ alpha, transposed=True)
    rest = np.eye(M) - _solve(factor, _solve(factor, np.eye(M)), transposed=True)  # I - B⁻¹
    by_Kuf = T @ alpha.T + P * _solve(L, rest @ (A / root), transposed=True)
    inner = _solve(L, rest @ (B - np.eye(M)), transposed=True)
    by_Kuu = -0.5 * (T @ T.T + P * _solve(L, inner.T, transposed=True))
    by_Kuu += jitter * np.mean(np.diagonal(by_Kuu)) * np.eye(M)
    by_noise = 0.5 * noise * np.sum(alpha**2, axis=1)
    by_noise += 0.5 * P * (np.sum(U * U, axis=0) - 1.0 + lacking / noise)
    return float(value), alpha, [by_Kuu, by_Kuf, -0.5 * P / noise], by_noise


def _solve(L: Array, C: Array, *, transposed: bool = False) -> Array:
    return solve_triangular(L, C, lower=True, trans=int(transposed), check_finite=False)


def solve(K: Array, noise: Array, Z: Array) -> tuple[float, Array, Array] | None:
    """Return Σ_p log N(z_p; 0, A), A⁻¹ Z and A⁻¹, its lower triangle, of A = K + diag(noise).

    None where A cannot be factorised.

    :param K: Covariance, [N, N]; overwritten.
    :param noise: Variance of each row's noise, [N].
    :param Z: Observations, [N, P].
    """
    N, P = Z.shape
    K[np.diag_indices(N)] += noise
    factor, failed = lapack.dpotrf(K, lower=True, clean=True)
    if failed or not np.isfinite(factor[-1, -1]):
        return None
    alpha, _ = lapack.dpotrs(factor, Z, lower=True)
    log_det = 2.0 * np.sum(np.log(np.diagonal(factor)))
    value = -0.5 * (np.sum(Z * alpha) + P * (log_det + N * np.log(2.0 * np.pi)))
    inverse, _ = lapack.dpotri(factor, lower=True, overwrite_c=True)
    return float(value), alpha, inverse


def _warped(warp: Array, Y: Array) -> tuple[Array, Array]:
    """g(y), [N, P], and its derivatives by ξ, log λ, ε, log δ and μ, [5, N, P]."""
    location, log_scale, skewness, log_tailweight, shift = warp
    scale, delta = np.exp(log_scale), np.exp(log_tailweight)
    u = (Y - location) / scale
    a = np.arcsinh(u)
    b = delta * a - skewness
    by_b, by_u = np.cosh(b), delta / np.sqrt(1.0 + u * u)
    return shift + np.sinh(b), np.stack(
        [-by_b * by_u / scale, -by_b * by_u * u, -by_b, by_b * delta * a, np.ones_like(Y)]
    )


def _log_slope(warp: Array, Y: Array) -> tuple[Array, Array]:
    """log g'(y), [N, P], and its derivatives by the same five, [5, N, P]."""
    location, log_scale, skewness, log_tailweight, _ = warp
    scale, delta = np.exp(log_scale), np.exp(log_tailweight)
    u = (Y - location) / scale
    a, square = np.arcsinh(u), 1.0 + u * u
    b = delta * a - skewness
    by_b, by_u = np.tanh(b), np.tanh(b) * delta / np.sqrt(square) - u / square
    log_cosh = np.logaddexp(b, -b) - np.log(2.0)
    value = log_tailweight - log_scale + log_cosh - 0.5 * np.log(square)
    return value, np.stack(
        [-by_u / scale, -1.0 - by_u * u, -by_b, 1.0 + by_b * delta * a, np.zeros_like(Y)]
    )


def _log_jacobian(warp: Array, Y: Array, steps: Array, noise: float) -> tuple[Array, Array, Array]:
    """The Jacobian of each observation, its derivatives by the warp, and by log σ²."""
    value, by_warp = _log_slope(warp, Y)
    by_noise = np.zeros_like(Y)
    for column in np.flatnonzero(steps):
        h, one, y = steps[column], warp[:, [column]], Y[:, [column]]
        (above, by_above), (below, by_below) = (_warped(one, y + s * h) for s in (0.5, -0.5))
        width = np.maximum((above - below)[:, 0], np.finfo(np.float64).tiny)
        ratio = width**2 / (12.0 * noise)
        value[:, column] = np.log(width / h) - 0.5 * np.log1p(ratio)
        by_warp[:, :, column] = (by_above - by_below)[:, :, 0] / (width * (1.0 + ratio))
        by_noise[:, column] = 0.5 * ratio / (1.0 + ratio)
    return value, by_warp, by_noise


def _log_prior(warp: Array) -> float:
    return -0.5 * float(np.sum((warp / _WARP_DEVIATIONS) ** 2))


def _precision_factor(precisions: Array, df: float) -> tuple[Array, Array, Array]:
    """½ E log λ - KL of the best Gamma q(λ), its derivatives by log E λ and by log(ν - 2)."""
    half, shape = 0.5 * df, 0.5 * (df + 1.0)
    constant = gammaln(shape) - gammaln(half) + half * np.log(half) - shape * np.log(shape) + shape
    logs = np.log(precisions)
    by_df = 0.5 * (digamma(shape) - digamma(half) + np.log(half) - np.log(shape) + 1.0)
    by_df = by_df + 0.5 * (logs - precisions)
    factor = shape * logs - half * precisions + constant
    return factor, shape - half * precisions, by_df * (df - 2.0)
