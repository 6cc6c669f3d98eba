"""What a model predicts of numbers: whole distributions, in raw units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from scipy.special import logsumexp

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation.mixture import (
    log_normal_probability,
    mixture_cdf,
    mixture_quantile,
    mixture_weights,
)
from gpflow_dwp.likelihoods import NormalMixture, Warp
from gpflow_dwp.likelihoods.warped_gaussian import QUADRATURE_POINTS, unwarped_moments, warp_of
from gpflow_dwp.models.mixture_posterior import MixturePosterior
from gpflow_dwp.pareto_smoothing import pareto_smoothed

__all__ = ["PredictiveDistribution"]

# Where a distribution function is integrated: panels, from that many deviations below the
# components to as many above, and the two Gauss-Legendre nodes of each.
_NUM_PANELS, _REACH = 128, 8.5
_NODES = 0.5 + 0.5 * np.array([-1.0, 1.0])[:, None, None] / np.sqrt(3.0)
_MAX_VALUES = 2**22
_LEAST_WEIGHT = 1e-10  # of a component, beside equal ones, that counts in a probability


@dataclass(frozen=True, eq=False)
class PredictiveDistribution:
    """The distributions of P targets at each of N points, noise included, in raw units.

    A target is a mixture of S normals: standardised, and warped by g where the
    likelihood is a :class:`~gpflow_dwp.likelihoods.WarpedGaussian`. g is increasing, so its inverse
    makes exact quantiles of the mixture's, and its slope densities per raw unit. Methods take
    targets y of shape [N, P], and raise a :class:`ValueError` if they have another one.

    >>> distribution = PredictiveDistribution(np.zeros([1, 2, 1]), np.ones([1, 2, 1]))
    >>> distribution.quantile([0.025, 0.975])[:, 0, 0].round(2).tolist()
    [-1.96, 1.96]

    :param means: Of the components, in the model's units, warped where there is a warp, [S, N, P].
    :param variances: Of the components, [S, N, P].
    :param target: Standardiser of the targets; None for none.
    :param warp: Increasing function g of standardised targets; None for none.
    :param weights: Of the components, which sum to 1, [S]; None for equal ones.
    :param num_nodes: How many components each draw has: those of the first node come first.
    :raises ValueError: If the shapes do not fit, or a variance is not positive.
    """

    means: Array
    variances: Array
    target: Standardiser | None = None
    warp: Warp | None = None
    weights: Array | None = None
    num_nodes: int = 1

    def __post_init__(self) -> None:
        means, variances = (np.asarray(part, np.float64) for part in (self.means, self.variances))
        if means.ndim != 3 or means.shape != variances.shape or not len(means):
            raise ValueError(
                "means and variances must both have shape [S, N, P], got "
                f"{list(means.shape)} and {list(variances.shape)}."
            )
        if self.target is not None and len(self.target.mean) != means.shape[-1]:
            raise ValueError(
                f"target must have {means.shape[-1]} columns, as means have, got "
                f"{len(self.target.mean)}."
            )
        is_finite = np.isfinite(means).all() and np.isfinite(variances).all()
        if not (is_finite and (variances > 0.0).all()):
            raise ValueError("means must be finite, and variances finite and positive")
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "variances", variances)

    @classmethod
    def of(
        cls, posterior: MixturePosterior, X: Array, target: Standardiser | None = None
    ) -> PredictiveDistribution:
        """Predict.

        :param posterior: Of a model of numbers, whose observations are normal given a draw and a
            point, or are so once they are warped; of others the components are normals with their
            moments.
        :param X: Inputs in the model's units, [N, D].
        :param target: Standardiser of the targets; None for none.
        """
        means, variances = (part.numpy() for part in posterior.predict_warped_components(X))
        return cls.of_components(posterior.likelihood, means, variances, target)

    @classmethod
    def of_components(
        cls,
        likelihood: Likelihood,
        means: Array,
        variances: Array,
        target: Standardiser | None = None,
    ) -> PredictiveDistribution:
        """Predict by components with these moments, warped and weighted as by a likelihood."""
        nodes: tuple[Any, ...] = ()
        if isinstance(likelihood, NormalMixture):
            num_nodes = len(likelihood.log_component_weights())
            nodes = likelihood.component_weights(len(means)), num_nodes
        return cls(means, variances, target, warp_of(likelihood), *nodes)

    def mean(self) -> Array:
        """Return the means, [N, P]; under a warp by quadrature."""
        return self._raw(self._moments[0])

    def variance(self) -> Array:
        """Return the variances, in squared raw units, [N, P]; under a warp by quadrature."""
        return self._moments[1] * np.square(self._scale)

    def deviation(self) -> Array:
        """Return the standard deviations, [N, P], also where their squares are beyond float64."""
        return np.sqrt(self._moments[1]) * self._scale

    def quantile(self, levels: npt.ArrayLike) -> Array:
        """Return quantiles, exactly those of the mixture.

        :param levels: A probability, or a vector of L, strictly between 0 and 1.
        :return: [N, P] for one level and [L, N, P] for a vector.
        :raises ValueError: If a level is not between 0 and 1.
        """
        level = np.asarray(levels, np.float64)
        if level.ndim > 1 or not ((level > 0.0) & (level < 1.0)).all():
            raise ValueError(f"levels must lie strictly between 0 and 1, got {levels!r}")
        found = mixture_quantile(level, *self._probable()._flat())
        return self._raw(self._unwarped(found.reshape(*level.shape, *self.means.shape[1:])))

    def cdf(self, y: npt.ArrayLike) -> Array:
        """Return the distribution function, [N, P]: at observed targets the PIT."""
        values = self._warped(self._standardised(y))
        return mixture_cdf(values.reshape(-1), *self._probable()._flat()).reshape(values.shape)

    def log_density(self, y: npt.ArrayLike, step: npt.ArrayLike = 0.0) -> Array:
        """Return the log density of each target by itself, per raw unit, [N, P].

        A target that is recorded to a step h has the probability of its cell, by its width:
        P(y - h/2 < y' < y + h/2) / h. So no model of integers scores above log 1 = 0, however
        narrow its noise.

        :param step: h, a number or one for each column, [P]; 0 for targets of full precision.
        :raises ValueError: If a step is negative or not finite.
        """
        return logsumexp(self.component_log_density(y, step), axis=0)

    def joint_log_density(self, y: npt.ArrayLike, num_nodes: int, step: npt.ArrayLike) -> Array:
        """Return the log density of all P targets of a point together, [N].

        Given a draw of the layers they are independent, each a mixture of the nodes; given a node
        that they share they are independent, too.

        :param num_nodes: Nodes of each draw that every column has of its own, K: components are in
            order of nodes, then draws.
        :param step: As for :meth:`log_density`.
        """
        each = self.component_log_density(y, step)
        of_draws = logsumexp(each.reshape(num_nodes, -1, *each.shape[1:]), axis=0)
        log_weights = logsumexp(self._log_weights().reshape(num_nodes, -1, 1), axis=0)
        # Each column's density has the weight of its draw in it, which counts once.
        others = (each.shape[-1] - 1) * log_weights
        return logsumexp(np.sum(of_draws, axis=-1) - others, axis=0)

    def component_log_density(self, y: npt.ArrayLike, step: npt.ArrayLike = 0.0) -> Array:
        """Log density or probability by width of each component, weights included, [S, N, P]."""
        values, scale = self._standardised(y), self._scale
        steps = np.broadcast_to(np.asarray(step, np.float64), scale.shape)
        if not (np.isfinite(steps) & (steps >= 0.0)).all():
            raise ValueError(f"step must be finite and not negative, got {step!r}.")
        half = 0.5 * steps / scale
        warped, deviation = self._warped(values), np.sqrt(self.variances)
        each = -0.5 * np.square((warped - self.means) / deviation) - np.log(deviation)
        each -= 0.5 * np.log(2.0 * np.pi)
        if self.warp is not None:
            each += self.warp.log_derivative(tf.constant(values)).numpy()
        each -= np.log(scale)
        if half.any():
            ends = [self._warped(values + sign * half) for sign in (-1.0, 1.0)]
            probability = log_normal_probability(*((end - self.means) / deviation for end in ends))
            with np.errstate(divide="ignore"):
                widths = np.where(half > 0.0, steps, 1.0)
                each = np.where(half > 0.0, probability - np.log(widths), each)
        return each + self._log_weights()[:, None, None]

    def without_own_row(self, observed: Array) -> tuple[PredictiveDistribution, Array]:
        r"""Weigh draws that each row has shaped itself as if it had not; and how far to rely on it.

        Given draw s row n is predicted from the others, but the draws are of a posterior of all
        rows. That without row n is this one by :math:`1 / p(y_n \mid G_s, y_{-n})`, which are
        weights once they are smoothed (Vehtari et al., "Practical Bayesian model evaluation using
        leave-one-out cross-validation and WAIC", 2017). Components are made of equal weight by
        systematic resampling.

        :param observed: What was observed, [N, P], NaN where it was not.
        :return: The distribution, and k̂ of each row, [N]: above 0.7 it cannot be relied on.
        :raises ValueError: If draws have weights of their own.
        """
        if self.weights is not None and self.num_nodes == 1:
            raise ValueError("distribution must have draws of equal weights.")
        densities = self.component_log_density(observed)
        shape = self.num_nodes, -1, *densities.shape[1:]
        densities = logsumexp(densities.reshape(shape), axis=0)
        densities = densities.sum(axis=-1, where=~np.isnan(observed))
        log_weights, k_hat = pareto_smoothed(-densities)
        totals = np.cumsum(np.exp(log_weights), axis=0)
        levels = (np.arange(len(densities)) + 0.5) / len(densities)
        chosen = [np.searchsorted(total, total[-1] * levels) for total in totals.T]
        chosen = np.minimum(np.stack(chosen, axis=1), len(densities) - 1)[None, ..., None]
        means, variances = (
            np.take_along_axis(part.reshape(shape), chosen, axis=1).reshape(part.shape)
            for part in (self.means, self.variances)
        )
        return replace(self, means=means, variances=variances), k_hat

    def _log_weights(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(mixture_weights(self.weights, len(self.means)))

    def crps(self, y: npt.ArrayLike) -> Array:
        """Return the continuous ranked probability score of each target, in its unit, [N, P].

        The integral of the squared error of the distribution function by quadrature, to a relative
        error of some 1e-5.
        """
        truth, probable = self._standardised(y), self._probable()
        values_of_row = len(probable.means) * _NUM_PANELS * len(_NODES) * truth.shape[1]
        size = max(1, _MAX_VALUES // values_of_row)
        scores = np.empty_like(truth)
        for start in range(0, len(truth), size):
            rows = slice(start, start + size)
            means, variances = probable.means[:, rows], probable.variances[:, rows]
            part = replace(probable, means=means, variances=variances)
            scores[rows] = part._squared_error(truth[rows])
        return scores * self._scale

    def sample(self, num_samples: int, seed: int = 0) -> Array:
        """Draw targets, from one component after the other, again and again, or by their weights.

        :param num_samples: Number of samples.
        :param seed: Seed of the draws.
        :return: [num_samples, N, P].
        """
        rng = np.random.default_rng(seed)
        chosen = np.arange(num_samples) % len(self.means)
        if self.weights is not None:
            chosen = rng.choice(len(self.means), num_samples, p=self.weights)
        noise = rng.standard_normal((num_samples, *self.means.shape[1:]))
        draws = self.means[chosen] + np.sqrt(self.variances[chosen]) * noise
        return self._raw(self._unwarped(draws))

    @property
    def _scale(self) -> Array:
        return np.ones(self.means.shape[-1]) if self.target is None else self.target.scale

    def _flat(self) -> tuple[Array, Array, Array | None]:
        """Means and variances of all targets side by side, [S, N P], and weights."""
        shape = len(self.means), -1
        return self.means.reshape(shape), self.variances.reshape(shape), self.weights

    def _probable(self) -> PredictiveDistribution:
        """The components of which probabilities consist: densities far out have others, too."""
        if self.weights is None:
            return self
        keep = self.weights * len(self.weights) > _LEAST_WEIGHT
        weights = self.weights[keep] / self.weights[keep].sum()
        means, variances = self.means[keep], self.variances[keep]
        return replace(self, means=means, variances=variances, weights=weights)

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """Mean and variance in standardised units, [N, P] each."""
        means, variances = self.means, self.variances
        if self.warp is not None:
            num_blocks = 1 + means.size * QUADRATURE_POINTS // _MAX_VALUES
            parts = (np.array_split(moments, num_blocks) for moments in (means, variances))
            blocks = [
                unwarped_moments(self.warp, *map(tf.constant, moments))
                for moments in zip(*parts, strict=True)
            ]
            means, variances = (np.concatenate(part) for part in zip(*blocks, strict=True))
        mean = np.average(means, axis=0, weights=self.weights)
        spread = variances + np.square(means - mean)
        return mean, np.average(spread, axis=0, weights=self.weights)

    def _standardised(self, y: npt.ArrayLike) -> Array:
        values = np.asarray(y, np.float64)
        if values.shape != self.means.shape[1:]:
            raise ValueError(
                f"y must have shape {list(self.means.shape[1:])}, got {list(values.shape)}."
            )
        return values if self.target is None else self.target.transform(values)

    def _raw(self, values: Array) -> Array:
        return values if self.target is None else self.target.inverse_transform(values)

    def _warped(self, values: Array) -> Array:
        return values if self.warp is None else self.warp.forward(tf.constant(values)).numpy()

    def _unwarped(self, values: Array) -> Array:
        return values if self.warp is None else self.warp.inverse(tf.constant(values)).numpy()

    def _squared_error(self, truth: Array) -> Array:
        """The integral of (F(y) - [y > truth])² over y, in standardised units, [N, P].

        By Gauss-Legendre quadrature in panels, which are as narrow as the components are. At the
        truth, where the integrand jumps, one of them ends.
        """
        offsets = np.linspace(-_REACH, _REACH, _NUM_PANELS + 1)[:, None, None, None]
        points = self.means + np.sqrt(self.variances) * offsets
        points = np.sort(points.reshape(-1, *truth.shape), axis=0)
        edges = self._unwarped(np.concatenate([points[:: len(self.means)], points[-1:]]))
        edges = np.sort(np.concatenate([edges, truth[None]]), axis=0)
        widths = np.diff(edges, axis=0)[:, None]
        y = edges[:-1, None] + _NODES * widths
        values = self._warped(y).reshape(*y.shape[:2], -1)
        below = mixture_cdf(values, *self._flat())
        errors = np.square(below.reshape(y.shape) - (y > truth))
        return (widths * errors).sum(axis=(0, 1)) / len(_NODES)
