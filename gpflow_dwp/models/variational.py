"""What every model of the package offers: a bound that minibatches estimate, and predictions."""

from __future__ import annotations

import abc
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf
from gpflow import default_float
from gpflow.base import InputData
from gpflow.likelihoods import Likelihood
from gpflow.models import BayesianModel, ExternalDataTrainingLossMixin

from gpflow_dwp.base import TrainingData
from gpflow_dwp.exceptions import NonFiniteBoundError
from gpflow_dwp.layers.base import Layer
from gpflow_dwp.likelihoods.gamma_gaussian import HasDivergence
from gpflow_dwp.models.data_checks import Batch, check_batch, count_columns
from gpflow_dwp.models.mixture_posterior import MixturePosterior
from gpflow_dwp.objectives import BoundTerms
from gpflow_dwp.validation import check_instance, check_integers

__all__ = ["VariationalModel", "describe_non_finite"]

_BOUNDS = 5  # are averaged: each is an average over the model's own few draws


def _of_posterior(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a model's method of one of its posteriors': with a number of draws and their seed."""

    @functools.wraps(method)
    def of_model(
        self: VariationalModel,
        *arguments: Any,
        num_samples: int | None = None,
        seed: int | tf.Tensor | None = 0,
        **options: Any,
    ) -> Any:
        return method(self.posterior(num_samples, seed=seed), *arguments, **options)

    signature = inspect.signature(method)
    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in (("num_samples", None), ("seed", 0))
    ]
    parameters = [*signature.parameters.values(), *own]
    of_model.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    of_model.__doc__ = (
        f"See :meth:`MixturePosterior.{method.__name__}`, of ``num_samples`` draws from ``seed``."
        "\n\n"
        "With the default seed all calls have the same draws; None is for fresh ones."
    )
    return of_model


class VariationalModel(BayesianModel, ExternalDataTrainingLossMixin, abc.ABC):
    """A stack of layers below a likelihood, with a bound in terms of its layers.

    To make one turns TensorFloat-32 off for the whole process, which matters in float32 on GPUs.

    :param layers: The layers, bottom first.
    :param likelihood: Any GPflow likelihood.
    :param num_data: Size of the training data, which scales minibatches.
    :param num_samples: Number of draws that estimate the bound, S.
    :param num_prediction_samples: Number of draws in predictions, S, where no other number is asked
        for.
    :raises ValueError: If ``layers`` or ``likelihood`` is of another type. All else is for
        subclasses to check, once they have their other parts.
    """

    layers: Sequence[Layer]
    protocol: str = "fast"
    """How :func:`fit` trains it where nothing else is said; a saved model forgets it."""
    draws_per_row: ClassVar[bool] = True
    """Whether rows of a batch have random numbers of their own, or all have those of a draw."""

    def __init__(
        self,
        layers: Sequence[Layer],
        likelihood: Likelihood,
        num_data: int,
        num_samples: int,
        num_prediction_samples: int,
    ) -> None:
        # On GPUs TensorFlow would round the factors of float32 products to 11 bits, which is no
        # covariance of a Gaussian process.
        tf.config.experimental.enable_tensor_float_32_execution(False)
        super().__init__()
        check_instance(Sequence, layers=layers)
        check_instance(Likelihood, likelihood=likelihood)
        self.layers = list(layers)
        self.likelihood = likelihood
        self.num_data = num_data
        self.num_samples = num_samples
        self.num_prediction_samples = num_prediction_samples

    @property
    @abc.abstractmethod
    def num_inputs(self) -> int:
        """Columns of X."""

    @property
    @abc.abstractmethod
    def num_outputs(self) -> int | None:
        """Latent functions, or None where that is not known."""

    @property
    def objective_name(self) -> str:
        """What :meth:`elbo` estimates."""
        return "ELBO"

    @property
    def num_hidden_layers(self) -> int:
        """Layers below the output that draw something which all data share."""
        return len(self.layers) - 1

    @property
    def num_log_ratios(self) -> int:
        """Terms of the bound that are global: see :class:`BoundTerms`."""
        return len(self.layers) + isinstance(self.likelihood, HasDivergence)

    @property
    def natural_parameters(self) -> list[tuple[gpflow.Parameter, gpflow.Parameter]]:
        """Means and roots of covariances that natural gradients can move; none by default."""
        return []

    @property
    def rows(self) -> Batch | None:
        """The training data where the posterior is made of them."""
        return None

    def set_data(self, data: TrainingData) -> None:
        """Give the model other training data: their number, and the rows of a regression output.

        Parameters stay as they are. The posterior of a :class:`RegressionGPLayer` is that of the
        new data at once, without a step of training; to go on with training after it, call
        :func:`fit` with ``kl_annealing_steps=0``, which keeps what hidden layers have learned.
        Compile functions of the model, such as a ``training_loss_closure``, anew.

        :param data: X [N, D] and Y [N, P], any number of rows, and weights [N] if there are any.
        :raises ValueError: If they do not fit the model (see :func:`check_data`), which is
            then as it was.
        """
        batch = check_batch(self, data)
        self._set_rows(batch)
        self.num_data = int(batch.X.shape[0])

    def _set_rows(self, rows: Batch) -> None:
        """Replace :attr:`rows`, if there are any."""

    def divergences(self, *, seed: int = 0) -> list[float]:
        """Estimate each layer's divergence from its prior, in nats, bottom first.

        They are averages over a few bounds. The last is the likelihood's, if it has one.

        :param seed: For the draws.
        :raises CholeskyError: If a factorisation fails with every jitter.
        """
        batch = self._any_datum()
        terms = [self._estimate_terms(batch, 1, seed + draw) for draw in range(_BOUNDS)]
        return [-float(ratio) for ratio in np.mean([term.log_ratios for term in terms], axis=0)]

    def _any_datum(self) -> Batch:
        """One on which no log ratio depends; its own term may be infinite."""
        num_columns = count_columns(self.likelihood, self.num_outputs) or 1
        widths = self.num_inputs, num_columns
        return Batch(*(tf.zeros([1, width], default_float()) for width in widths))

    def collapsed_layers(self, nats: Iterable[float]) -> list[int]:
        """Return the layers that have learned nothing, as ``least_nats`` of their classes says.

        :param nats: Divergence of each layer's posterior from its prior, [L].
        :return: Their indices, bottom first.
        """
        pairs = enumerate(zip(self.layers, nats, strict=False))
        return [index for index, (layer, found) in pairs if found < layer.least_nats]

    def check_training_data(self, data: TrainingData) -> Batch:
        """Check that data are those that the model is of.

        :param data: X [N, D] and Y [N, P], and weights [N] if there are any: all training data.
        :raises ValueError: If they do not fit the model, there are not ``num_data`` of them, or
            they are not the model's :attr:`rows`.
        """
        batch = check_batch(self, data)
        num_rows = batch.X.shape[0]
        if num_rows != self.num_data:
            raise ValueError(
                f"data must hold the model's num_data={self.num_data} rows, got {num_rows}; "
                "model.set_data(data) gives it others."
            )
        of_one = tf.ones([num_rows], batch.X.dtype)
        same = [
            np.array_equal(
                of_one if own is None else own, of_one if given is None else given, equal_nan=True
            )
            for own, given in zip(self.rows or (), batch, strict=False)
        ]
        if not all(same):
            raise ValueError(
                "data must hold the rows that the model's output layer is a regression on, in "
                "their order and with their weights, got others; model.set_data(data) replaces "
                "them."
            )
        return batch

    def elbo(
        self,
        data: TrainingData,
        *,
        num_importance_samples: int = 1,
        seed: int | tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Estimate what training maximises on the whole data set, in nats, from a batch.

        It is a lower bound of the evidence where :attr:`objective_name` is "ELBO".

        Derivatives by parameters are right to any order. Those by α, β, μ and σ of a Wishart layer
        leave out a term of mean zero, so that second ones by these are no symmetric matrix, and so
        do those by an encoder that are doubly reparameterised.

        :param data: A batch X [N, D], Y [N, P], of which NaN are missing; or three, with weights
            [N] that say how often each row counts.
        :param num_importance_samples: Number of draws, K, of each datum's latent variables: 1 for
            the evidence lower bound, more for the importance-weighted one, whose local log ratios
            are not annealed. Without latent variables all are the same.
        :param seed: An integer or stateless seed for the draws; None for fresh ones.
        :return: A scalar, unbiased for the bound.
        :raises ValueError: If the model cannot draw so.
        :raises CholeskyError: If, in eager mode, a factorisation fails with every jitter.
        :raises NonFiniteBoundError: If, in eager mode, the bound is not finite; it names the layer.
        """
        return self.elbo_terms(
            data, num_importance_samples=num_importance_samples, seed=seed
        ).weighted_sum()

    @tf.autograph.experimental.do_not_convert
    def elbo_terms(
        self,
        data: TrainingData,
        *,
        num_importance_samples: int = 1,
        seed: int | tf.Tensor | None = None,
    ) -> BoundTerms:
        """Estimate the terms of :meth:`elbo`: the data's, and each layer's.

        A likelihood that has variables of its own, as :class:`GammaGaussian` has, says by a method
        ``kl_divergence`` what they cost; the last log ratio is theirs. Parameters and errors as for
        :meth:`elbo`.
        """
        check_integers(num_importance_samples=num_importance_samples)
        terms = self._estimate_terms(check_batch(self, data), num_importance_samples, seed)
        where = describe_non_finite(self, terms) if tf.executing_eagerly() else None
        if where is not None:
            raise NonFiniteBoundError(
                f"The bound is not a finite number: {where} not finite. Try a larger jitter or "
                "float64, and look for parameters that have run away."
            )
        return terms

    @abc.abstractmethod
    def _estimate_terms(
        self, batch: Batch, num_importance_samples: int, seed: int | tf.Tensor | None
    ) -> BoundTerms:
        """What :meth:`elbo_terms` returns, finite or not, of arguments that it has checked."""

    @abc.abstractmethod
    def posterior(
        self, num_samples: int | tf.Tensor | None = None, *, seed: int | tf.Tensor | None = None
    ) -> MixturePosterior:
        """Draw all layers below the output, for predictions with the present parameters."""

    def maximum_log_likelihood_objective(self, data: TrainingData) -> tf.Tensor:
        """Return :meth:`elbo`, with fresh draws."""
        return self.elbo(data)

    predict_f = _of_posterior(MixturePosterior.predict_f)
    predict_y = _of_posterior(MixturePosterior.predict_y)
    predict_log_density = _of_posterior(MixturePosterior.predict_log_density)

    def predict_f_samples(
        self,
        Xnew: InputData,
        num_samples: int | None = None,
        full_cov: bool = True,
        full_output_cov: bool = False,
        *,
        seed: int | tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Draw latent functions: see :meth:`MixturePosterior.sample_f`.

        :param Xnew: Inputs, [N, D].
        :param num_samples: How many functions; None for one, without the leading axis.
        :param full_cov: As for :meth:`MixturePosterior.sample_f`.
        :param full_output_cov: Outputs of one draw are drawn jointly in any case.
        :param seed: An integer or stateless seed; None for fresh draws.
        :return: [num_samples, N, Q], or [N, Q].
        """
        samples = self.posterior(1 if num_samples is None else num_samples, seed=seed).sample_f(
            Xnew, full_cov
        )
        return samples[..., 0, :, :] if num_samples is None else samples

    def predict_y_samples(
        self,
        Xnew: InputData,
        num_samples: int | None = None,
        full_cov: bool = False,
        *,
        seed: int | tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Draw observations, as :meth:`predict_f_samples` draws functions."""
        samples = self.posterior(1 if num_samples is None else num_samples, seed=seed).sample_y(
            Xnew, full_cov
        )
        return samples[..., 0, :, :] if num_samples is None else samples

    def _check_common_parts(self) -> None:
        """Refuse what does not fit: layers that come twice, the likelihood, numbers."""
        for index, layer in enumerate(self.layers):
            if any(layer is below for below in self.layers[:index]):
                raise ValueError(
                    f"layers[{index}] must be a layer of its own, got one ({type(layer).__name__}) "
                    "that comes before: each layer has a posterior, and is drawn once."
                )
        latent_dim, num_outputs = self.likelihood.latent_dim, self.num_outputs
        if None not in (latent_dim, num_outputs) and latent_dim != num_outputs:
            raise ValueError(
                f"{type(self.likelihood).__name__} needs {latent_dim} latent functions, but the "
                f"output layer has num_outputs={num_outputs}."
            )
        names = ("num_data", "num_samples", "num_prediction_samples")
        check_integers(**{name: getattr(self, name) for name in names})

    def _with_likelihood(self, log_ratios: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Layers' log ratios, and that of the likelihood where it has variables of its own."""
        if not isinstance(self.likelihood, HasDivergence):
            return [*log_ratios]
        return [*log_ratios, -self.likelihood.kl_divergence()[None]]

    def _num_draws(self, num_samples: int | tf.Tensor | None) -> int | tf.Tensor:
        if num_samples is None:
            return self.num_prediction_samples
        if not tf.is_tensor(num_samples):
            check_integers(num_samples=num_samples)
        return num_samples


def describe_non_finite(model: VariationalModel, terms: BoundTerms) -> str | None:
    """Name the lowest part of a model whose term of the bound is not finite.

    :param terms: Those of one bound of the model, not symbolic.
    :return: The beginning of a sentence that ends in "not finite"; None if every term is finite.
    """
    bad_layers = np.flatnonzero(~np.isfinite(terms.log_ratios))
    if bad_layers.size:
        parts = {f"layers[{index}]": layer for index, layer in enumerate(model.layers)}
        parts["the likelihood"] = model.likelihood
        name, part = list(parts.items())[int(bad_layers[0])]
        return f"{name} ({type(part).__name__}) has a log ratio that is"
    if not np.isfinite(terms.data):
        return f"the likelihood ({type(model.likelihood).__name__}) has an expectation that is"
    return None
