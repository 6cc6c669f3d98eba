"""What a likelihood answers for itself, beside GPflow's methods: by one adapter a class.

Those of GPflow's classes are here, those of this package's beside the class. One without, as of a
user's class, takes what the nearest class takes that it inherits from, and starts as that one does.
How it is drawn from it says itself, as its density may be another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow import Parameter, likelihoods
from gpflow.likelihoods import Likelihood
from gpflow.utilities.parameter_or_function import evaluate_parameter_or_function

from gpflow_dwp.base import Array, Seed
from gpflow_dwp.random import normal, split_seed, uniform
from gpflow_dwp.validation import is_known

__all__ = [
    "AcceptedObservations",
    "Observed",
    "ObservedGaussian",
    "accepted_observations",
    "draw_gamma",
    "draw_student",
    "observed",
    "sample_observations",
]


class AcceptedObservations(NamedTuple):
    """What observations, Y [N, P], a likelihood takes.

    :param expected: In words, to follow "Y must hold".
    :param accepts: From Y to Booleans of its shape, with TensorFlow operations. Y is finite, and 1
        where observations are missing.
    :param num_columns: Number of columns, P; None for one column for each latent function, where
        their number is not the likelihood's own, and for any number where it is.
    """

    expected: str = "finite numbers"
    accepts: Callable[[tf.Tensor], tf.Tensor] = lambda Y: tf.ones_like(Y, tf.bool)
    num_columns: int | None = None


_ADAPTERS: dict[type[Likelihood], type[Observed]] = {}


class Observed:
    """Answers that hold for any likelihood; subclasses say of which classes they have better ones.

    :param likelihood: The likelihood.
    """

    num_switches = 0
    """Columns of observations that say which of a likelihood's parts a row has."""

    _accepted: AcceptedObservations | None = None

    def __init_subclass__(cls, of: Sequence[type[Likelihood]] = ()) -> None:
        _ADAPTERS.update(dict.fromkeys(of, cls))

    def __init__(self, likelihood: Any) -> None:
        self.likelihood = likelihood

    @property
    def by_entry(self) -> bool:
        """Whether it is a product over the entries of Y, each of one function's.

        Single entries may then be missing; of others, whole rows.
        """
        return isinstance(self.likelihood, likelihoods.ScalarLikelihood)

    def accepted(self) -> AcceptedObservations:
        """What observations it takes."""
        return self._accepted or AcceptedObservations(num_columns=self.likelihood.observation_dim)

    def labels(self, Y: tf.Tensor) -> tf.Tensor:
        """Observations as GPflow's methods take them."""
        return Y

    def functions(self, Y: Array) -> Array:
        """Where functions [N, Q] start, by observations [N, P]; at 0 where no scale is known."""
        return np.zeros((len(Y), self.num_functions(Y.shape[1])))

    def num_functions(self, num_columns: int) -> int:
        """Q, the functions that observations of P columns need."""
        return int(self.likelihood.latent_dim or num_columns - self.num_switches)

    def precision(self) -> float:
        """How precise that is: as the observations, or e⁻⁴ if it is a guess or noise a function.

        With Gaussian noise that is exact for a single layer with inducing points on the data. From
        e⁻⁴, the published code's start, Adam needs thousands of steps to get there.
        """
        return float(np.exp(-4.0))

    def sample(self, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
        """One observation for each row, [N, P], of inputs [N, D] and functions [N, Q]."""
        raise NotImplementedError(
            f"Observations of the likelihood {type(self.likelihood).__name__} cannot be drawn; its "
            "latent functions can, with predict_f_samples."
        )


def observed(likelihood: Likelihood) -> Observed:
    """Return what answers for a likelihood."""
    kinds = type(likelihood).__mro__
    return next((_ADAPTERS[kind] for kind in kinds if kind in _ADAPTERS), Observed)(likelihood)


def accepted_observations(likelihood: Likelihood) -> AcceptedObservations:
    """Return what observations a likelihood takes.

    A likelihood of the user's says so by a method of this name, without arguments.
    """
    own = getattr(likelihood, "accepted_observations", observed(likelihood).accepted)
    return own()  # type: ignore[no-any-return]


@check_shapes("X: [N, D]", "functions: [S, N, Q]", "seed: [2]", "return: [S, N, P]")
def sample_observations(
    likelihood: Likelihood, X: tf.Tensor, functions: tf.Tensor, seed: Seed
) -> tf.Tensor:
    """Draw y_n from p(y_n | f_n), independently for each draw of f.

    Observations are as in training data: labels from 0, [S, N, 1], of classifiers.

    :param likelihood: One of GPflow's or of this package's; or one of the user's that says how, by
        a method ``sample_observations(X, F, seed)``, from X [N, D] and F [N, Q] to [N, P].
    :param X: Inputs, which a likelihood may read, [N, D].
    :param functions: Draws of f, [S, N, Q].
    :param seed: A stateless seed, [2].
    :raises NotImplementedError: If it is not known how to draw from the likelihood.
    """
    shape = tf.shape(functions)
    rows = tf.reshape(functions, [-1, functions.shape[-1]])
    draw = observed(likelihood).sample
    if not is_known(likelihood, Likelihood):
        draw = getattr(likelihood, "sample_observations", Observed(likelihood).sample)
    drawn = draw(tf.tile(X, [shape[0], 1]), rows, seed)
    unfolded = tf.reshape(drawn, tf.concat([shape[:2], tf.shape(drawn)[1:]], axis=0))
    return tf.cast(unfolded, functions.dtype)


class ObservedGaussian(Observed, of=[likelihoods.Gaussian]):
    """Normal noise, with a scale or a variance that is a number or a function."""

    def functions(self, Y: Array) -> Array:
        return Y

    def precision(self) -> float:
        scale, variance = self.likelihood.scale, getattr(self.likelihood, "variance", None)
        if isinstance(scale, Parameter):
            return float(np.mean(scale.numpy() ** -2))
        if isinstance(variance, Parameter):
            return float(np.mean(1.0 / variance.numpy()))
        return super().precision()

    def sample(self, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
        mean = self.likelihood.conditional_mean(X, F)
        variance = self.likelihood.conditional_variance(X, F)
        return mean + tf.sqrt(variance) * normal(tf.shape(mean), seed, F.dtype)


class _StudentT(ObservedGaussian, of=[likelihoods.StudentT]):
    def sample(self, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
        given, bound = self.likelihood.scale, self.likelihood.scale_lower_bound
        scale = evaluate_parameter_or_function(given, X, lower_bound=bound)
        return F + scale * draw_student(F, tf.cast(self.likelihood.df, F.dtype), seed)


class _Bernoulli(Observed, of=[likelihoods.Bernoulli]):
    _accepted = AcceptedObservations("0 or 1", lambda Y: tf.equal(Y, 0.0) | tf.equal(Y, 1.0))

    def functions(self, Y: Array) -> Array:
        return 2.0 * Y - 1.0

    def sample(self, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
        return uniform(tf.shape(F), seed, F.dtype) < self.likelihood.conditional_mean(X, F)


class _Classes(Observed, of=[likelihoods.Softmax, likelihoods.MultiClass]):
    def accepted(self) -> AcceptedObservations:
        of_classes = _whole_numbers(self.likelihood.latent_dim or 1, " in one column, not one-hot")
        return of_classes._replace(num_columns=1)

    def labels(self, Y: tf.Tensor) -> tf.Tensor:
        return tf.cast(Y, tf.int32)  # TensorFlow's cross entropy takes no others

    def functions(self, Y: Array) -> Array:
        return 2.0 * (np.arange(self.likelihood.latent_dim or 1) == Y) - 1.0

    def sample(self, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
        cumulative = tf.cumsum(self.likelihood.conditional_mean(X, F), axis=-1)[:, :-1]
        passed = uniform([tf.shape(F)[0], 1], seed, F.dtype) > cumulative
        return tf.reduce_sum(tf.cast(passed, F.dtype), axis=-1, keepdims=True)


class _Ordinal(Observed, of=[likelihoods.Ordinal]):
    def accepted(self) -> AcceptedObservations:
        return _whole_numbers(self.likelihood.num_bins)


class _Poisson(Observed, of=[likelihoods.Poisson]):
    _accepted = AcceptedObservations("whole numbers from 0", lambda Y: _is_whole(Y) & (Y >= 0.0))

    def sample(self, X: tf.Tensor, F: tf.Tensor, seed: Seed) -> tf.Tensor:
        rate = self.likelihood.conditional_mean(X, F)
        return tf.random.stateless_poisson(tf.shape(F), seed, rate, dtype=F.dtype)


class _Beta(Observed, of=[likelihoods.Beta]):
    _accepted = AcceptedObservations(
        "numbers strictly between 0 and 1", lambda Y: (Y > 0.0) & (Y < 1.0)
    )


class _Exponential(Observed, of=[likelihoods.Exponential]):
    _accepted = AcceptedObservations("numbers that are not negative", lambda Y: Y >= 0.0)


class _Gamma(Observed, of=[likelihoods.Gamma]):
    _accepted = AcceptedObservations("positive numbers", lambda Y: Y > 0.0)


class _Switched(Observed, of=[likelihoods.SwitchedLikelihood]):
    num_switches, by_entry = 1, False  # a switch is no function's

    def accepted(self) -> AcceptedObservations:
        parts = [accepted_observations(each) for each in self.likelihood.likelihoods]

        def accepts(Y: tf.Tensor) -> tf.Tensor:
            values, index = Y[:, :-1], Y[:, -1:]
            known = [
                tf.equal(index, float(number)) & part.accepts(values)
                for number, part in enumerate(parts)
            ]
            every = tf.reduce_any(tf.stack(known), axis=0)
            return tf.concat([every, tf.reduce_any(every, axis=1, keepdims=True)], axis=1)

        index = f"the index of a likelihood, 0 to {len(parts) - 1}, in the last column"
        return AcceptedObservations(f"what each row's likelihood takes, and {index},", accepts)

    def functions(self, Y: Array) -> Array:
        values, index = Y[:, :-1], Y[:, -1:]
        parts = [observed(each).functions(values) for each in self.likelihood.likelihoods]
        return np.select([index == number for number in range(len(parts))], parts)

    def precision(self) -> float:
        return float(np.mean([observed(each).precision() for each in self.likelihood.likelihoods]))


def draw_student(F: tf.Tensor, df: tf.Tensor, seed: Seed) -> tf.Tensor:
    """Numbers of Student's t of the shape of F: a normal over the root of χ²/df."""
    normal_seed, gamma_seed = split_seed(seed, 2)
    precision = draw_gamma(tf.fill(tf.shape(F), 0.5 * df), gamma_seed) / (0.5 * df)
    return normal(tf.shape(F), normal_seed, F.dtype) / tf.sqrt(precision)


def draw_gamma(concentration: tf.Tensor, seed: Seed) -> tf.Tensor:
    """Numbers of the Gamma distribution with a rate of 1, of the shape of their concentrations."""
    return tf.random.stateless_gamma(
        tf.shape(concentration), seed, concentration, dtype=concentration.dtype
    )


def _is_whole(Y: tf.Tensor) -> tf.Tensor:
    return tf.equal(Y, tf.floor(Y))


def _whole_numbers(count: int, where: str = "") -> AcceptedObservations:
    return AcceptedObservations(
        f"whole numbers from 0 to {count - 1}{where}",
        lambda Y: _is_whole(Y) & (Y >= 0.0) & (count - 1.0 >= Y),
    )
