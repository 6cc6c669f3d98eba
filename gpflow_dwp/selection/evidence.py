"""The evidence of Gaussian processes of named kernels, with its gradient, by LAPACK."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import gpflow
import numpy as np
import numpy.typing as npt
from gpflow.kernels import Kernel, Matern32, Matern52, SquaredExponential
from gpflow.likelihoods import Gaussian
from scipy.linalg import blas, lapack
from scipy.special import digamma, gammaln

from gpflow_dwp.base import Array
from gpflow_dwp.likelihoods import SinhArcsinh, WarpedGaussian, WarpedStudentT
from gpflow_dwp.likelihoods.warped_gaussian import warp_of

__all__ = ["Evidence", "has_closed_form", "shape_of", "solve", "squared_distances"]

Shape = Callable[[Array], tuple[Array, Array]]


def _squared_exponential(squared: Array) -> tuple[Array, Array]:
    k = np.exp(-0.5 * squared)
    return k, -0.5 * k


def _matern32(squared: Array) -> tuple[Array, Array]:
    r = np.sqrt(3.0 * squared)
    decay = np.exp(-r)
    return (1.0 + r) * decay, -1.5 * decay


def _matern52(squared: Array) -> tuple[Array, Array]:
    r = np.sqrt(5.0 * squared)
    decay = np.exp(-r)
    return (1.0 + r + r * r / 3.0) * decay, -5.0 / 6.0 * (1.0 + r) * decay


# k(r²) / variance and its derivative by r².
_SHAPES: dict[type[Kernel], Shape] = {
    SquaredExponential: _squared_exponential,
    Matern32: _matern32,
    Matern52: _matern52,
}

# What observations of unit variance can justify. Of the warp: ξ, log λ, ε, log δ, μ.
_LOG_LENGTHSCALE = np.log([3e-3, 1e3])
_LOG_VARIANCE = np.log([1e-4, 1e4])
_LOG_NOISE = np.log([1e-10, 4.0])
_LOG_DF = np.log([1e-2, 1e3])
_LOG_PRECISION = np.log([1e-8, 1e2])
_WARP_LIMITS = np.array([[-20, 20], [-33, 5], [-10, 10], [np.log(0.02), np.log(5.0)], [-50, 50]])
_WARP_DEVIATIONS = np.array([2.0, 1.0, 1.0, 1.0, np.inf])[:, None]


def has_closed_form(kernel: Kernel, likelihood: Gaussian) -> bool:
    """Whether :class:`Evidence` knows the kernel and the likelihood."""
    return type(kernel) in _SHAPES and (
        type(likelihood) is Gaussian
        or (isinstance(likelihood, WarpedGaussian) and isinstance(likelihood.warp, SinhArcsinh))
    )


def shape_of(kernel: Kernel) -> Shape | None:
    """Return k(r²) / variance and its derivative by r², as a function; None of other kernels."""
    return _SHAPES.get(type(kernel))


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
    (Rasmussen and Williams, 2006, equation 5.9).

    :param X: Inputs, [N, D].
    :param Y: Observations, [N, P].
    :param weights: w, [N], positive.
    :param steps: h of each column, [P], 0 for none.
    :param kernel: One of those with a closed form, which is read and written.
    :param likelihood: With one noise variance.
    :param precisions: λ under Student's noise, [N]; else None.
    :param jitter: Relative jitter of the layer this stands for: what it takes from the bound.
    """

    X: Array
    Y: Array
    weights: Array
    steps: Array
    kernel: Kernel
    likelihood: Gaussian
    precisions: Array | None = None
    jitter: float = 0.0

    def __post_init__(self) -> None:
        self._shape = _SHAPES[type(self.kernel)]
        warp = warp_of(self.likelihood)
        self._warp = warp if isinstance(warp, SinhArcsinh) and warp.trainable_parameters else None
        self._lambda = np.ones(len(self.X)) if self.precisions is None else self.precisions
        self._num_lengthscales = int(np.size(self.kernel.lengthscales))
        variance = self.likelihood.variance
        if not isinstance(variance, gpflow.Parameter):
            raise ValueError("likelihood must have one noise variance, as a parameter.")
        self._noise = variance
        self._has_tails = isinstance(self.likelihood, WarpedStudentT)

    def start(self) -> Array:
        """The vector of the present values of kernel, likelihood and precisions."""
        parts = [
            np.log(np.atleast_1d(self.kernel.lengthscales.numpy())),
            np.log([float(self.kernel.variance.numpy())]),
            np.log([float(np.max(self._noise.numpy()))]),
        ]
        if self._warp is not None:
            w = self._warp
            rows = (w.location, _log(w.scale), w.skewness, _log(w.tailweight), w.shift)
            parts.append(np.stack([np.asarray(row) for row in rows]).reshape(-1))
        if isinstance(self.likelihood, WarpedStudentT):
            parts += [np.log([float(self.likelihood.df.numpy()) - 2.0]), np.log(self._lambda)]
        low, high = self.limits().T
        return np.clip(np.concatenate(parts), low, high)

    def assign(self, vector: Array) -> None:
        """Give kernel, likelihood and precisions the values of a vector."""
        lengthscales, variance, noise, warp, df, precisions = self._split(vector)
        self.kernel.lengthscales.assign(lengthscales.reshape(self.kernel.lengthscales.shape))
        self.kernel.variance.assign(variance)
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
        parts = [[_LOG_LENGTHSCALE] * self._num_lengthscales, [_LOG_VARIANCE], [noise]]
        if self._warp is not None:
            parts.append(np.repeat(_WARP_LIMITS, self.Y.shape[1], axis=0).tolist())
        if self._has_tails:
            parts += [[_LOG_DF], [_LOG_PRECISION] * len(self.X)]
        return np.concatenate([np.asarray(part, np.float64) for part in parts])

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """The evidence with its priors, and its gradient; -inf where K cannot be factorised."""
        X, w, P = self.X, self.weights, self.Y.shape[1]
        lengthscales, variance, noise, warp, df, precisions = self._split(vector)
        row_noise = noise / (w * precisions)
        k, slope = self._shape(squared_distances(X / lengthscales))
        Z, Z_by_warp = (self.Y, self.Y) if warp is None else _warped(warp, self.Y)
        solved = solve(variance * k, row_noise, Z)
        if solved is None:
            return -np.inf, np.zeros_like(vector)
        value, alpha, inverse = solved
        A_bar = blas.dsyrk(0.5, alpha, beta=-0.5 * P, c=inverse, lower=True, overwrite_c=False)
        A_bar += np.tril(A_bar, -1).T
        # Lengthscales: dr²/d log ℓ = -2 (x - x')²/ℓ².
        W = -2.0 * variance * A_bar * slope
        if self._num_lengthscales == 1:
            of_all = np.sum(W * squared_distances(X / lengthscales))
            by_lengthscale = np.array([of_all])
        else:
            by_lengthscale = 2.0 * (W.sum(1) @ X**2 - np.sum(X * (W @ X), 0)) / lengthscales**2
        penalty = 0.5 * self.jitter * variance * P / row_noise  # of each row
        by_variance = variance * np.sum(A_bar * k) - penalty.sum()
        by_row_noise = np.diagonal(A_bar) * row_noise + penalty
        value += np.sum(0.5 * P * ((1.0 - w) * np.log(2.0 * np.pi * noise) - np.log(w)))
        value -= penalty.sum()
        by_noise = by_row_noise.sum() + 0.5 * P * np.sum(1.0 - w)
        parts = [by_lengthscale, [by_variance], None]
        if warp is None:
            ratio = self.steps**2 / (12.0 * noise)
            value -= 0.5 * w.sum() * np.log1p(ratio).sum()
            by_noise += 0.5 * w.sum() * (ratio / (1.0 + ratio)).sum()
        else:
            factor, by_warp, of_noise = _log_jacobian(warp, self.Y, self.steps, noise)
            by_noise += np.sum(w[:, None] * of_noise)
            by_warp = np.sum(w[:, None] * by_warp - alpha * Z_by_warp, axis=1)
            value += np.sum(w[:, None] * factor) + _log_prior(warp)
            parts.append((by_warp - warp / _WARP_DEVIATIONS**2).reshape(-1))
        if self._has_tails:
            factor, by_precision, by_df = _precision_factor(precisions, df)
            value += P * np.sum(w * factor - 0.5 * np.log(precisions))
            by_precisions = P * (w * by_precision - 0.5) - by_row_noise
            parts += [[P * np.sum(w * by_df)], by_precisions]
        parts[2] = [by_noise]
        return float(value), np.concatenate([np.asarray(part, np.float64) for part in parts])

    def log_prior(self, vector: Array) -> float:
        """The log density of the warp's parameters, up to a constant."""
        warp = self._split(vector)[3]
        return 0.0 if warp is None else _log_prior(warp)

    def _split(self, vector: Array) -> tuple[Array, float, float, Array | None, float, Array]:
        D, P = self._num_lengthscales, self.Y.shape[1]
        lengthscales, (variance, noise) = np.exp(vector[:D]), np.exp(vector[D : D + 2])
        rest = vector[D + 2 :]
        warp = None
        if self._warp is not None:
            warp, rest = rest[: 5 * P].reshape(5, P), rest[5 * P :]
        if not self._has_tails:
            return lengthscales, variance, noise, warp, np.inf, np.ones(len(self.X))
        return lengthscales, variance, noise, warp, 2.0 + np.exp(rest[0]), np.exp(rest[1:])


def squared_distances(X: Array) -> Array:
    """Squared Euclidean distances between rows, [N, N]."""
    squares = np.sum(X**2, axis=1)
    distances = squares[:, None] + squares - 2.0 * (X @ X.T)
    np.maximum(distances, 0.0, out=distances)
    np.fill_diagonal(distances, 0.0)
    return distances


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


def _log(parameter: gpflow.Parameter) -> npt.NDArray[np.float64]:
    return np.log(parameter.numpy())
