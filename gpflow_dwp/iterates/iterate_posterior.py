"""Posteriors over the iterates of training, and predictions that average over draws of them."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import InputData, MeanAndVariance, RegressionData
from gpflow.models import BayesianModel
from gpflow.utilities import to_default_float

from gpflow_dwp.base import Array
from gpflow_dwp.likelihoods.observed import observed
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.predictive import mixture_moments
from gpflow_dwp.random import as_seed, fold_in, normal, split_seed
from gpflow_dwp.training import TrainingProgress
from gpflow_dwp.validation import check_instance, check_integers

__all__ = [
    "FactorModel",
    "IteratePosterior",
    "MixturePredictions",
    "assign_parameter_vector",
    "parameter_vector",
]


class FactorModel(NamedTuple):
    """The Gaussian of c + F h + ε, where h ~ N(0, I) and ε ~ N(0, diag(ψ)).

    :param mean: Mean of the vectors, c, [D].
    :param factors: Factor loadings, F, [D, K].
    :param variances: Variances of the noise, ψ, [D].
    """

    mean: tf.Tensor
    factors: tf.Tensor
    variances: tf.Tensor

    def as_distribution(self) -> tfp.distributions.MultivariateNormalDiagPlusLowRankCovariance:
        """Return the TFP distribution, whose density needs K by K matrices only."""
        return tfp.distributions.MultivariateNormalDiagPlusLowRankCovariance(
            self.mean, self.variances, self.factors
        )

    def sample(self, num_samples: int, *, seed: int | tf.Tensor | None = None) -> tf.Tensor:
        """Draw vectors.

        :param num_samples: Number of samples.
        :param seed: An integer or stateless seed; None for fresh draws.
        :return: [num_samples, D].
        :raises ValueError: If ``num_samples`` is not a positive integer.
        """
        check_integers(num_samples=num_samples)
        dtype = tf.as_dtype(self.mean.dtype)
        factor_seed, noise_seed = split_seed(as_seed(seed), 2)
        D, K = self.factors.shape
        h = normal([num_samples, K], factor_seed, dtype)
        noise = tf.sqrt(self.variances) * normal([num_samples, D], noise_seed, dtype)
        return self.mean + tf.matmul(h, self.factors, transpose_b=True) + noise

    def covariance(self) -> tf.Tensor:
        """Return F Fᵀ + diag(ψ), [D, D]: for small D only."""
        return self.as_distribution().covariance()


class MixturePredictions(tf.Module, abc.ABC):
    """Predictions of a model, averaged over draws of its parameters.

    The model's own parameters are put back after every prediction, also after one that failed.
    ``tf.train.Checkpoint(posterior)`` writes and reads what was collected, with the model.

    :ivar papers: BibTeX of the method: see :func:`citation`.
    """

    papers: tuple[str, ...]

    @abc.abstractmethod
    def at_draws(
        self, num_draws: int, *, seed: int | tf.Tensor | None = 0
    ) -> Generator[BayesianModel, None, None]:
        """Give a model one draw of its parameters after another; put its own back at the end.

        :param num_draws: Number of draws.
        :param seed: An integer or stateless seed; None for fresh draws.
        :raises ValueError: If too few iterates were collected.
        """

    def predict_f(
        self,
        Xnew: InputData,
        num_draws: int = 30,
        *,
        seed: int | tf.Tensor | None = 0,
        **options: Any,
    ) -> MeanAndVariance:
        """Return mean and variance of the latent functions, [N, Q], of the mixture.

        :param Xnew: Inputs, [N, D].
        :param num_draws: Number of draws of the parameters.
        :param seed: For all draws; None for fresh ones.
        :param options: Further arguments of the model's method, such as ``num_samples``.
        """
        means, variances = self._at_each("predict_f", num_draws, seed, Xnew, options)
        return mixture_moments(means, variances)

    def predict_y(
        self,
        Xnew: InputData,
        num_draws: int = 30,
        *,
        seed: int | tf.Tensor | None = 0,
        **options: Any,
    ) -> MeanAndVariance:
        """Return mean and variance of observations, [N, P]; parameters as :meth:`predict_f`."""
        means, variances = self._at_each("predict_y", num_draws, seed, Xnew, options)
        return mixture_moments(means, variances)

    def predict_log_density(
        self,
        data: RegressionData,
        num_draws: int = 30,
        *,
        seed: int | tf.Tensor | None = 0,
        **options: Any,
    ) -> tf.Tensor:
        """Return the logarithm of the mixture's density of each observation, [N].

        :param data: Inputs [N, D] and observations [N, P].

        Further parameters as for :meth:`predict_f`.
        """
        (densities,) = self._at_each("predict_log_density", num_draws, seed, tuple(data), options)
        return tfp.math.reduce_logmeanexp(densities, axis=0)

    def _at_each(
        self,
        name: str,
        num_draws: int,
        seed: int | tf.Tensor | None,
        argument: Any,
        options: Mapping[str, Any],
    ) -> tuple[tf.Tensor, ...]:
        """Results of a method at every draw, stacked on a first axis."""
        check_integers(num_draws=num_draws)
        seed = as_seed(seed)
        argument = tf.nest.map_structure(to_default_float, argument)
        compiled: dict[int, Callable[..., Any]] = {}
        results = []
        # Closed at once if the model's method fails, so that its parameters are put back then.
        with contextlib.closing(self.at_draws(num_draws, seed=seed)) as models:
            for index, model in enumerate(models):
                method = compiled.setdefault(
                    id(model), tf.function(getattr(model, name), autograph=False)
                )
                own = {"seed": fold_in(seed, index)} if isinstance(model, VariationalModel) else {}
                result = method(_with_labels(model, argument), **own, **options)
                results.append(result if isinstance(result, tuple) else (result,))
        return tuple(tf.stack(parts) for parts in zip(*results, strict=True))


def _with_labels(model: BayesianModel, argument: Any) -> Any:
    """Inputs, or a tuple of inputs and observations, as the model's likelihood takes them."""
    if isinstance(argument, tuple) and hasattr(model, "likelihood"):
        X, Y = argument
        return X, observed(model.likelihood).labels(Y)
    return argument


class IteratePosterior(MixturePredictions):
    """A Gaussian over the parameters that a training run passes through.

    A callback of :func:`gpflow_dwp.fit`; with a training loop of your own, call :meth:`collect`
    where an iterate is to count.

    :param model: A GPflow model; its trainable parameters are collected in their unconstrained
        space, in which also the draws are.
    :param start_step: Iterates of a run up to this step are not collected.
    :raises ValueError: If ``model`` is no TensorFlow module or has no trainable parameters, or
        ``start_step`` is not an integer of at least 0.
    """

    def __init__(self, model: BayesianModel, start_step: int = 0) -> None:
        check_instance(tf.Module, model=model)
        check_integers(at_least=0, start_step=start_step)
        super().__init__(name=type(self).__name__)
        self.model = model
        self.start_step = start_step
        self._dimension = len(parameter_vector(model))
        self._count = tf.Variable(0, trainable=False, dtype=tf.int64)

    def __call__(self, progress: TrainingProgress) -> None:
        """Collect the present parameters: the callback of a training run."""
        if progress.step > self.start_step:
            self.collect()

    def collect(self) -> None:
        """Collect the model's present parameters.

        :raises ValueError: If they are not finite; nothing is collected then.
        """
        vector = parameter_vector(self.model)
        if vector.shape != (self._dimension,):
            raise ValueError(
                f"model must have {self._dimension} trainable parameters, as at the start, "
                f"got {len(vector)}."
            )
        if not np.all(np.isfinite(vector)):
            raise ValueError("model must have finite parameters.")
        self._count.assign_add(1)
        self._observe(vector)

    @property
    def num_collected(self) -> int:
        """How many iterates were collected."""
        return int(self._count)

    @abc.abstractmethod
    def distribution(self) -> FactorModel:
        """Return the Gaussian over the parameter vector.

        :raises ValueError: If too few iterates were collected.
        """

    def sample(self, *, seed: int | tf.Tensor | None = None) -> None:
        """Put a draw into the model.

        :param seed: An integer or stateless seed; None for a fresh draw.
        :raises ValueError: If too few iterates were collected; the model is as it was then.
        """
        assign_parameter_vector(self.model, self.distribution().sample(1, seed=seed)[0])

    def use_mean(self) -> None:
        """Put the mean of the iterates into the model; errors as for :meth:`sample`."""
        assign_parameter_vector(self.model, self.distribution().mean)

    def at_draws(
        self, num_draws: int, *, seed: int | tf.Tensor | None = 0
    ) -> Generator[BayesianModel, None, None]:
        check_integers(num_draws=num_draws)
        draws = self.distribution().sample(num_draws, seed=seed)
        own = parameter_vector(self.model)
        try:
            for draw in draws:
                assign_parameter_vector(self.model, draw)
                yield self.model
        finally:
            assign_parameter_vector(self.model, own)

    @abc.abstractmethod
    def _observe(self, vector: Array) -> None:
        """Take one more iterate in; ``num_collected`` counts it already."""

    def _zeros(self, *leading: int) -> tf.Variable:
        """A place for vectors, [..., D], in float64 also where the model is in float32."""
        return tf.Variable(np.zeros((*leading, self._dimension)), trainable=False)

    def _check_collected(self, at_least: int) -> None:
        if self.num_collected < at_least:
            raise ValueError(
                f"{type(self).__name__} needs at least {at_least} collected iterates, "
                f"got {self.num_collected}."
            )


def parameter_vector(module: tf.Module) -> Array:
    """Return all trainable parameters, in their unconstrained space, in one float64 vector, [D].

    :param module: A GPflow model, or any module.
    :raises ValueError: If nothing is trainable.
    """
    if not module.trainable_variables:
        raise ValueError(f"{type(module).__name__} has no trainable parameters.")
    parts = [variable.numpy().ravel() for variable in module.trainable_variables]
    return np.concatenate(parts, dtype=np.float64)


def assign_parameter_vector(module: tf.Module, vector: npt.ArrayLike) -> None:
    """Give a module the parameters that :func:`parameter_vector` returned.

    :param module: A GPflow model, or any module.
    :param vector: The vector of all parameters, [D].
    :raises ValueError: If the length is not that of the module's parameters; none has changed then.
    """
    variables = module.trainable_variables
    sizes = [variable.shape.num_elements() for variable in variables]
    vector = np.asarray(vector)
    if vector.shape != (sum(sizes),):
        raise ValueError(f"vector must have shape ({sum(sizes)},), got {vector.shape}.")
    parts = np.split(vector, np.cumsum(sizes)[:-1])
    for variable, part in zip(variables, parts, strict=True):
        variable.assign(part.reshape(variable.shape).astype(variable.dtype.as_numpy_dtype))
