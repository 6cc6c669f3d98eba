"""What posteriors over the iterates of training share: predictions, and a place on disk."""

from __future__ import annotations

import abc
import contextlib
import io
import json
import os
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import InputData, MeanAndVariance, RegressionData
from gpflow.likelihoods import Softmax
from gpflow.models import BayesianModel
from gpflow.utilities import to_default_float

from gpflow_dwp.base import Array
from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.files import read_arrays, write_whole
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.predictive import mixture_moments
from gpflow_dwp.random import as_seed, fold_in
from gpflow_dwp.validation import check_integers

__all__ = ["MixturePredictions"]


class MixturePredictions(abc.ABC):
    """Predictions of a model, averaged over draws of its parameters.

    The model's own parameters are put back after every prediction, also after one that failed.
    """

    @property
    @abc.abstractmethod
    def papers(self) -> tuple[str, ...]:
        """BibTeX of the method, and of what its model rests on: see :func:`citation`."""

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

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write what was collected into a directory, such as that of the saved model.

        It is one file, which is replaced in one step.

        :param directory: Where to; made if it is missing.
        :raises ValueError: If it is no path.
        """
        buffer, path = io.BytesIO(), _path(directory)
        np.savez(buffer, header=np.array(json.dumps(self._header())), **self._state())
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, buffer.getvalue())

    def load(self, directory: str | os.PathLike[str]) -> None:
        """Read what :meth:`save` wrote, in place of what was collected.

        :param directory: The directory that was written.
        :raises ValueError: If that is no path.
        :raises SavedModelError: If there is nothing, it is damaged, or it was collected by another
            kind of posterior, with other settings, or from another model; nothing has changed then.
        """
        path = _path(directory)
        try:
            state = read_arrays(path.read_bytes())
            header = json.loads(str(state.pop("header")))
        except (OSError, ValueError, KeyError) as error:
            raise SavedModelError(f"{path} cannot be read: {error}") from error
        if header != self._header():
            raise SavedModelError(
                f"{path} was collected by {header}, but this posterior is {self._header()}."
            )
        self._restore(state)

    @abc.abstractmethod
    def _header(self) -> dict[str, Any]:
        """Kind and settings, which must be the same where :meth:`_restore` is to work."""

    @abc.abstractmethod
    def _state(self) -> dict[str, Array]:
        """What :meth:`_restore` needs."""

    @abc.abstractmethod
    def _restore(self, state: Mapping[str, Array]) -> None:
        """Take the place of what was collected."""

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


def _path(directory: str | os.PathLike[str]) -> Path:
    return Path(directory) / "iterates.npz"


def _with_labels(model: BayesianModel, argument: Any) -> Any:
    """Inputs, or a tuple of inputs and observations, as the model's likelihood takes them."""
    if isinstance(argument, tuple) and isinstance(getattr(model, "likelihood", None), Softmax):
        # TensorFlow's cross entropy takes labels as integers only.
        X, Y = argument
        return X, tf.cast(Y, tf.int32)
    return argument
