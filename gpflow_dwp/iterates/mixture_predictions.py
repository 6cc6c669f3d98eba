"""What posteriors over the iterates of training share: predictions that average over draws."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import Any

import tensorflow as tf
from gpflow.base import InputData, MeanAndVariance, RegressionData
from gpflow.likelihoods import Softmax
from gpflow.models import BayesianModel
from gpflow.utilities import to_default_float

from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.predictive import mixture_moments
from gpflow_dwp.random import as_seed, fold_in
from gpflow_dwp.validation import check_integers

__all__ = ["MixturePredictions"]


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
        count = tf.cast(tf.shape(densities)[0], densities.dtype)
        return tf.reduce_logsumexp(densities, axis=0) - tf.math.log(count)

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
    if isinstance(argument, tuple) and isinstance(getattr(model, "likelihood", None), Softmax):
        # TensorFlow's cross entropy takes labels as integers only.
        X, Y = argument
        return X, tf.cast(Y, tf.int32)
    return argument
