"""Draws of a chain of emulators: each link gets the draws of those before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow import default_float
from gpflow.base import InputData, MeanAndVariance
from gpflow.likelihoods import Gaussian, Likelihood
from scipy.stats import norm, qmc

from gpflow_dwp.base import Array
from gpflow_dwp.estimator.regressor import DeepWishartRegressor
from gpflow_dwp.layers.propagation import InducingPath
from gpflow_dwp.likelihoods.observed import sample_observations
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.linalg.factorisation import Factorised
from gpflow_dwp.models import FunctionDraws
from gpflow_dwp.models.mixture_posterior import MixturePosterior, snapshot
from gpflow_dwp.models.predictive import mixture_moments, predictive_moments
from gpflow_dwp.random import as_seed, normal, split_seed


class Link(NamedTuple):
    """An emulator in a chain.

    :param regressor: What predicts.
    :param columns: What it takes of the chain's inputs and of the outputs of links before, in this
        order: their indices.
    :param added: Those of what its predictions are relative to, one for each output, or none.
    :param is_of_few: Whether the variance counts that as many parameters were fitted as inputs.
    """

    regressor: DeepWishartRegressor
    columns: tuple[int, ...]
    added: tuple[int, ...] = ()
    is_of_few: bool = False

    @property
    def inflation(self) -> float:
        """Factor of the variance: N / (N - p - 2), as a linear model of p coefficients has it.

        There the fitted variance is a factor (N - p) / N too small, and Student's distribution of N
        - p degrees of freedom has a variance of (N - p) / (N - p - 2). Each input counts as a
        coefficient, for its lengthscale.
        """
        num_runs = int(self.regressor.model_.num_data)
        return num_runs / max(num_runs - len(self.columns) - 2, 1) if self.is_of_few else 1.0


class Field(NamedTuple):
    """What the outputs of the last link are coefficients of, in standardised units.

    :param basis: Orthonormal patterns, [K, P].
    :param variance: Of what they leave, [P].
    """

    basis: Array
    variance: Array


class _Stage:
    """Links that predict the same, each from its share of S draws; in units of the first of them.

    :param normals: Standard normals of each draw, for functions and for their noise, [S, 2 Q].
    :param noise: Whether what is passed on has the noise of observations.
    """

    def __init__(self, links: Sequence[Link], normals: Array, *, noise: bool) -> None:
        self.links, self.noise, self.num_samples = links, noise, len(normals)
        self.shares = [len(part) for part in np.array_split(normals, len(links))]
        self.posteriors: list[Any] = []
        for each, share in zip(links, self.shares, strict=True):
            posterior: Any = each.regressor._posterior()
            if posterior.draws_differ:
                posterior = each.regressor._draws(share, each.regressor._seed)
                posterior.spread_kernel_draws()
                posterior.path = _of_own_inputs(posterior.path, share)
            self.posteriors.append(posterior)
        self.units = [each.regressor._raw_units() for each in links]
        self.scales = [each.regressor.output_standardiser_.scale for each in links]
        self.num_outputs = len(self.scales[0])
        self._normals = [
            tf.constant(part[:, None], default_float()) for part in np.hsplit(normals, 2)
        ]
        self._constants = links[0].regressor._constants
        self.likelihood: Likelihood = self.posteriors[0].likelihood
        if len(links) > 1:
            noises = [
                np.asarray(posterior.likelihood.variance) * np.square(scale / self.scales[0])
                for posterior, scale in zip(self.posteriors, self.scales, strict=True)
            ]
            self.likelihood = snapshot(Gaussian(np.mean(noises, axis=0), variance_lower_bound=0.0))

    @property
    def has_normal_noise(self) -> bool:
        """Whether observations are functions and normal noise, without a warp."""
        return type(self.likelihood) in (Gaussian, RowMeansGaussian)

    def moments(self, known: tf.Tensor) -> MeanAndVariance:
        """Mean and variance of functions given what each draw knows, [S, N, Q] each."""
        return self._of_links(known, _moments_at, self.posteriors)

    def functions_at(self, known: tf.Tensor, functions: Sequence[FunctionDraws]) -> tf.Tensor:
        """Values of coherent functions, [S, N, Q]."""

        def evaluate(part: tuple[Any, FunctionDraws, float], X: tf.Tensor) -> tuple[Any, float]:
            posterior, own, scale = part
            values = own(X)
            if scale != 1.0:
                mean = _moments_at(posterior, X)[0]
                values = mean + scale * (values - mean)
            return values, 0.0

        scales = [each.inflation**0.5 for each in self.links]
        parts = list(zip(self.posteriors, functions, scales, strict=True))
        return self._of_links(known, evaluate, parts)[0]

    def passed(self, f: tf.Tensor) -> tf.Tensor:
        """What the next stage gets of functions, in raw units, [S, N, P]."""
        if not self.noise:
            warp = warp_of(self.likelihood)
            f = f if warp is None else warp.inverse(f)
        elif self.has_normal_noise:
            deviation = tf.sqrt(tf.cast(self.likelihood.variance, f.dtype))
            f = f + deviation * self._normals[1][..., : f.shape[-1]]
        else:
            nothing = tf.zeros([tf.shape(f)[1], 1], f.dtype)
            f = sample_observations(self.likelihood, nothing, f, as_seed(0))
        varying = iter(tf.unstack(self.units[0].to_raw(f)[..., : self.num_outputs], axis=-1))
        return tf.stack(
            [
                next(varying) if np.isnan(value) else tf.fill(tf.shape(f)[:2], value)
                for value in self._constants
            ],
            axis=-1,
        )

    def draw(self, known: tf.Tensor) -> tf.Tensor:
        """What the next stage gets: draws that have the same random numbers at all points."""
        mean, variance = self.moments(known)
        return self.passed(mean + tf.sqrt(variance) * self._normals[0][..., : mean.shape[-1]])

    def _of_links(self, known: tf.Tensor, predict: Any, parts: Sequence[Any]) -> MeanAndVariance:
        found, several = [], len(self.links) > 1
        shares = tf.split(self.spread(known), self.shares) if several else [known]
        for link, units, scale, own, part in zip(
            self.links, self.units, self.scales, shares, parts, strict=True
        ):
            X = units.to_model(tf.gather(own, link.columns, axis=-1))
            mean, variance = predict(part, X)
            variance = variance * link.inflation
            if several:
                mean = units.to_raw(mean)
                if link.added:
                    mean = mean + tf.gather(own, link.added, axis=-1)
                base = self.links[0].regressor.output_standardiser_
                mean = (mean - base.mean) / base.scale
                variance = variance * np.square(scale / base.scale)
            found.append((mean, variance + tf.zeros_like(mean)))
        mean, variance = (tf.concat(each, axis=0) for each in zip(*found, strict=True))
        return mean, variance

    def spread(self, values: tf.Tensor) -> tf.Tensor:
        """Values of each draw, [S, ...], where all have the same."""
        shape = tf.concat([[self.num_samples], tf.shape(values)[1:]], axis=0)
        return tf.broadcast_to(values, shape)


class ChainedPosterior(MixturePosterior):
    """S draws of a chain, each through all of its links: see :class:`MixturePosterior`.

    A draw of a link is one of its hidden layers and of its functions at a point. Random numbers are
    the same at all points, and of all links together are points of a Sobol sequence, so that
    moments are accurate with few draws. Functions of all points jointly are
    :class:`~gpflow_dwp.models.FunctionDraws`, each a function of one of those before.

    :param stages: Links that predict the same, of each step of the chain.
    :param num_inputs: Inputs of the chain, D.
    :param noise: Whether what is passed on has the noise of observations.
    :param num_samples: Number of draws, S.
    :param seed: Of all random numbers.
    :param field: What the last outputs are coefficients of; None for themselves.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[Link]],
        num_inputs: int,
        *,
        noise: bool,
        num_samples: int,
        seed: int,
        field: Field | None = None,
    ) -> None:
        widths = [2 * int(each[0].regressor.model_.num_outputs or 1) for each in stages]
        sobol = qmc.Sobol(sum(widths), seed=np.random.default_rng(seed))
        size = 2 ** int(np.ceil(np.log2(num_samples)))
        normals = norm.ppf(np.clip(sobol.random(size)[:num_samples], 1e-12, 1.0 - 1e-12))
        parts = np.split(normals, np.cumsum(widths)[:-1], axis=1)
        *self._earlier, self._last = [
            _Stage(links, part, noise=noise) for links, part in zip(stages, parts, strict=True)
        ]
        likelihood, self._field = self._last.likelihood, field
        num_outputs = self._last.posteriors[0].num_outputs
        if field is not None:
            variance, num_outputs = field.variance, field.basis.shape[1]
            if self._last.has_normal_noise:
                noise = np.asarray(likelihood.variance) * np.square(self._last.scales[0])
                variance = variance + noise @ np.square(field.basis)
            likelihood = snapshot(Gaussian(variance, variance_lower_bound=0.0))
        stages_of = (*self._earlier, self._last)
        entries = [each._num_inducing for stage in stages_of for each in stage.posteriors]
        super().__init__(
            likelihood,
            num_inputs=num_inputs,
            num_outputs=num_outputs,
            num_inducing=max(entries),
            num_samples=num_samples,
            function_seed=as_seed(seed),
        )
        self._seed = seed
        self._functions: list[list[FunctionDraws]] | None = None

    def _propagate(
        self, X: tf.Tensor, *, full_cov: bool = False, mixed: bool = True
    ) -> MeanAndVariance:
        known = X[None]
        for stage in self._earlier:
            known = tf.concat([stage.spread(known), stage.spread(stage.draw(known))], axis=-1)
        return self._finished(*self._last.moments(known))

    def predict_f(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """As that of all posteriors; a covariance is the one of the coherent functions."""
        if not full_cov:
            return super().predict_f(Xnew, full_output_cov=full_output_cov)
        values = self.sample_f(Xnew)
        nothing = tf.zeros([self.num_samples, *[values.shape[1]] * 2], values.dtype)
        return mixture_moments(values, nothing, full_cov=True)

    def _sample_functions(self, X: tf.Tensor, *, full_cov: bool) -> tf.Tensor:
        return self.functions(X) if full_cov else super()._sample_functions(X, full_cov=False)

    def functions(self, X: tf.Tensor) -> tf.Tensor:
        """Coherent functions, one of each draw: from [N, D] to [S, N, Q], in model's units."""
        return self._finished(self._functions_of_last(X), None)[0]

    def sample_y(self, Xnew: InputData, full_cov: bool = False) -> tf.Tensor:
        """As that of all posteriors; functions of a field are coherent in any case.

        Its coefficients are observed with their noise, which is then part of all outputs jointly.
        """
        if self._field is None:
            return super().sample_y(Xnew, full_cov)
        functions = self._functions_of_last(self._checked_points(Xnew, full_cov=False))
        nothing = tf.zeros([tf.shape(functions)[1], 1], functions.dtype)
        of_coefficients, of_rest = split_seed(self._function_seed, 2)
        observed = sample_observations(self._last.likelihood, nothing, functions, of_coefficients)
        values = self._last.units[0].to_raw(observed) @ self._field.basis
        return values + np.sqrt(self._field.variance) * normal(
            tf.shape(values), of_rest, values.dtype
        )

    def _functions_of_last(self, X: tf.Tensor) -> tf.Tensor:
        """Coherent functions of the last links, [S, N, Q]."""
        if self._functions is None:
            with tf.init_scope():  # of all calls, in graphs and outside
                self._functions = [
                    [
                        FunctionDraws(
                            each.regressor.model_, share, num_features=500, seed=self._seed + number
                        )
                        for each, share in zip(stage.links, stage.shares, strict=True)
                    ]
                    for number, stage in enumerate([*self._earlier, self._last])
                ]
        known = tf.convert_to_tensor(X)[None]
        for stage, functions in zip(self._earlier, self._functions, strict=False):
            new = stage.passed(stage.functions_at(known, functions))
            known = tf.concat([stage.spread(known), new], axis=-1)
        return self._last.functions_at(known, self._functions[-1])

    def _finished(self, mean: tf.Tensor, variance: tf.Tensor | None) -> tuple[Any, Any]:
        if self._field is None:
            return mean, variance
        if variance is None:
            warp = warp_of(self._last.likelihood)
            mean = mean if warp is None else warp.inverse(mean)
        else:
            if not self._last.has_normal_noise:  # Which is in what is predicted of functions then.
                nothing = tf.zeros([tf.shape(mean)[1], 1], mean.dtype)
                mean, variance = predictive_moments(self._last.likelihood, nothing, mean, variance)
            variance = (variance * np.square(self._last.scales[0])) @ np.square(self._field.basis)
        return self._last.units[0].to_raw(mean) @ self._field.basis, variance


def _of_own_inputs(path: InducingPath, num_samples: int) -> InducingPath:
    """A path whose draws have inputs of their own: the first K_ii, which is of all, for each."""
    if not path.hidden:
        return path
    first, *others = path.hidden
    below = Factorised(*(tf.repeat(part, num_samples, axis=0) for part in first.below))
    return path._replace(hidden=(first._replace(below=below), *others))


def _moments_at(posterior: Any, X: tf.Tensor) -> MeanAndVariance:
    """Moments of functions where each draw has inputs of its own, [S, N, D] or [1, N, D]."""
    if posterior.draws_differ:
        X = tf.broadcast_to(X, tf.concat([[posterior.num_samples], tf.shape(X)[1:]], axis=0))
        mean, variance = posterior._propagate(X)
        return mean, variance if variance.shape.rank == 3 else variance[..., None]
    moments = posterior._propagate(tf.reshape(X, [-1, X.shape[-1]]))
    shape, widths = tf.shape(X)[:2], (moments[0].shape[-1], *moments[1].shape[2:], 1)
    mean, variance = (
        tf.reshape(part, tf.concat([shape, [width]], axis=0))
        for part, width in zip(moments, widths, strict=False)
    )
    return mean, variance
