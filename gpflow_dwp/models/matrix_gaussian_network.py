"""Neural networks with matrix-variate Gaussian posteriors, as GPflow models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow import default_float
from gpflow.base import InputData, MeanAndVariance, RegressionData
from gpflow.likelihoods import Likelihood
from gpflow.models.util import data_input_to_tensor
from gpflow.utilities import assert_params_false, to_default_float

from gpflow_dwp.base import Seed
from gpflow_dwp.layers import GammaGaussian, MatrixGaussianLayer
from gpflow_dwp.models.predictive import (
    expected_log_likelihoods,
    mixture_moments,
    predictive_log_densities,
    predictive_moments,
)
from gpflow_dwp.models.variational import VariationalModel
from gpflow_dwp.objectives import BoundTerms, evidence_lower_bound
from gpflow_dwp.random import as_seed, fold_in, normal, normal_at_points, split_seed
from gpflow_dwp.validation import check_integers

__all__ = ["ACTIVATIONS", "Activation", "MatrixGaussianNetwork", "NetworkPosterior"]

Activation = Literal["cos", "relu", "tanh"]
"""What can stand between two layers."""

ACTIVATIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "cos": tf.cos,
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
}
"""The functions that an :data:`Activation` names."""

Noise = Callable[[Seed, int], tf.Tensor]


class MatrixGaussianNetwork(VariationalModel):
    """A network whose weight matrices have matrix-variate Gaussian posteriors.

    Louizos and Welling (2016). Hidden units are drawn point by point (section 2.4); the output
    layer's Gaussian is integrated over by the likelihood, which has less variance than drawing
    from it. The outputs are f ⊙ scale + loc.

    :param layers: Bottom first; each one's inputs are the outputs of the one below.
    :param likelihood: Any GPflow likelihood. The divergence of a :class:`GammaGaussian` precision
        from its prior is part of the last log ratio.
    :param num_data: Size of the training data, which scales minibatches.
    :param num_samples: S, the draws that estimate the bound (the paper's number is 1).
    :param activation: Between the layers.
    :param output_loc: Added to the outputs, [Q]; None for 0.
    :param output_scale: Multiplies the outputs, positive, [Q]; None for 1.
    :param num_prediction_samples: S in predictions, where no other number is asked for.
    :raises ValueError: If the parts do not fit together.
    """

    def __init__(
        self,
        layers: Sequence[MatrixGaussianLayer],
        likelihood: Likelihood,
        num_data: int,
        num_samples: int = 10,
        *,
        activation: Activation = "relu",
        output_loc: npt.ArrayLike | None = None,
        output_scale: npt.ArrayLike | None = None,
        num_prediction_samples: int = 100,
    ) -> None:
        super().__init__()
        check_integers(
            num_data=num_data,
            num_samples=num_samples,
            num_prediction_samples=num_prediction_samples,
        )
        self.layers = list(layers)
        self.likelihood = likelihood
        self.num_data, self.num_samples = num_data, num_samples
        self.num_prediction_samples = num_prediction_samples
        self.activation = activation
        self._check_parts()
        self.output_loc = self._output_vector("output_loc", output_loc, 0.0)
        self.output_scale = self._output_vector("output_scale", output_scale, 1.0)
        if not np.all(self.output_scale > 0.0):
            raise ValueError(f"output_scale must be positive, got {self.output_scale}.")

    @property
    def num_inputs(self) -> int:
        """Columns of X."""
        return self.layers[0].num_inputs

    @property
    def num_outputs(self) -> int:
        """Latent functions."""
        return self.layers[-1].num_outputs

    def elbo_terms(
        self,
        data: RegressionData,
        *,
        num_importance_samples: int = 1,
        seed: int | tf.Tensor | None = None,
    ) -> BoundTerms:
        """Estimate the terms of :meth:`elbo`: the data's, and minus each layer's divergence.

        Parameters as for :meth:`elbo`; the network has no latent variables.
        """
        del num_importance_samples
        X, Y = (to_default_float(part) for part in data)
        shape = [self.num_samples, tf.shape(X)[0]]

        def noise(seed: Seed, width: int) -> tf.Tensor:
            return normal([*shape, width], seed, X.dtype)

        mean, variance = self.propagate(X, self.num_samples, as_seed(seed), noise)
        ratios = [-layer.kl_divergence() for layer in self.layers]
        if isinstance(self.likelihood, GammaGaussian):
            ratios[-1] -= self.likelihood.kl_divergence()
        return evidence_lower_bound(
            expected_log_likelihoods(self.likelihood, X, Y, mean, variance),
            ratios,
            num_data=self.num_data,
        )

    def posterior(
        self, num_samples: int | tf.Tensor | None = None, *, seed: int | tf.Tensor | None = None
    ) -> NetworkPosterior:
        """Fix the draws of all layers below the output, for predictions.

        :param num_samples: S; None for ``num_prediction_samples``. In a function that is compiled
            for any number, a scalar tensor.
        :param seed: An integer or stateless seed; None for fresh draws.
        :raises ValueError: If ``num_samples`` is not a positive integer.
        """
        num_samples = self._num_draws(num_samples)
        return NetworkPosterior(self, num_samples, as_seed(seed))

    def propagate(
        self, X: tf.Tensor, num_samples: int, seed: Seed, noise: Noise
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return mean and variance of the outputs, given draws of all layers below, [S, N, Q].

        :param X: Inputs, [N, D].
        :param num_samples: S.
        :param seed: For pseudo-data and hidden units.
        :param noise: Standard normal numbers [S, N, width], from a seed and a width.
        """
        activation = ACTIVATIONS[self.activation]
        values = X[None]
        for layer, own in zip(self.layers, split_seed(seed, len(self.layers)), strict=True):
            pseudo_seed, unit_seed = split_seed(own, 2)
            output = layer.propagate(values, num_samples, pseudo_seed)
            if layer is not self.layers[-1]:
                values = activation(layer.sample(output, noise(unit_seed, layer.num_outputs)))
        mean = output.mean * self.output_scale + self.output_loc
        scale = self.layers[-1].column_variances() * self.output_scale**2
        variance = output.row_variance[..., None] * scale
        shape = [num_samples, tf.shape(X)[0], self.num_outputs]
        static = [None if tf.is_tensor(num_samples) else num_samples, None, self.num_outputs]
        mean, variance = tf.broadcast_to(mean, shape), tf.broadcast_to(variance, shape)
        return tf.ensure_shape(mean, static), tf.ensure_shape(variance, static)

    def _output_vector(
        self, name: str, value: npt.ArrayLike | None, default: float
    ) -> npt.NDArray[np.float64]:
        array: npt.NDArray[np.float64]
        array = np.asarray(default if value is None else value, default_float())
        if array.ndim > 1 or (array.ndim == 1 and array.shape != (self.num_outputs,)):
            raise ValueError(f"{name} must have shape [{self.num_outputs}], got {array.shape}.")
        return np.broadcast_to(array, [self.num_outputs]).copy()

    def _check_parts(self) -> None:
        if not self.layers:
            raise ValueError("layers must hold at least one layer, got none.")
        for below, above in zip(self.layers, self.layers[1:], strict=False):
            if below.num_outputs != above.num_inputs:
                raise ValueError(
                    f"layers must fit: num_outputs={below.num_outputs} is below a layer of "
                    f"num_inputs={above.num_inputs}."
                )
        if self.activation not in ACTIVATIONS:
            names = ", ".join(ACTIVATIONS)
            raise ValueError(f"activation must be one of {names}, got {self.activation!r}.")
        latent_dim = self.likelihood.latent_dim
        if latent_dim is not None and latent_dim != self.num_outputs:
            raise ValueError(
                f"{type(self.likelihood).__name__} needs {latent_dim} latent functions, but the "
                f"last layer has num_outputs={self.num_outputs}."
            )


class NetworkPosterior:
    """Predictions of a network: mixtures over S draws of everything below the output layer.

    Equal points get equal draws, so that predictions do not depend on how points are batched.

    :param model: The network.
    :param num_samples: S.
    :param seed: For all draws.
    """

    def __init__(self, model: MatrixGaussianNetwork, num_samples: int, seed: Seed) -> None:
        self._model = model
        self.num_samples = num_samples
        self._seed, self._function_seed = split_seed(seed, 2)
        self._likelihood_seed = fold_in(self._function_seed, 1)

    def predict_f(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Return mean and variance of the latent functions, [N, Q] each.

        :param Xnew: Inputs, [N, D].
        :param full_cov: Not supported: points are drawn from their marginals.
        :param full_output_cov: Not supported.
        :raises ValueError: If ``Xnew`` is not a matrix with D columns.
        :raises NotImplementedError: If a covariance is asked for.
        """
        assert_params_false(self.predict_f, full_cov=full_cov, full_output_cov=full_output_cov)
        return mixture_moments(*self._propagate(self._check_inputs(Xnew)))

    def predict_y(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Return mean and variance of observations, [N, P] each.

        Parameters and errors as for :meth:`predict_f`.
        """
        assert_params_false(self.predict_y, full_cov=full_cov, full_output_cov=full_output_cov)
        return mixture_moments(*self.predict_y_components(Xnew))

    def predict_y_components(self, Xnew: InputData) -> MeanAndVariance:
        """Return mean and variance of observations under every draw, [S, N, P] each.

        :param Xnew: Inputs, [N, D].
        :raises ValueError: If ``Xnew`` is not a matrix with D columns.
        """
        X = self._check_inputs(Xnew)
        return predictive_moments(
            self._model.likelihood, X, *self._propagate(X), seed=self._likelihood_seed
        )

    def predict_log_density(
        self, data: RegressionData, full_cov: bool = False, full_output_cov: bool = False
    ) -> tf.Tensor:
        """Return the logarithm of the mixture's predictive density of each observation, [N].

        :param data: Inputs, [N, D], and observations, [N, P].
        :param full_cov: Not supported.
        :param full_output_cov: Not supported.
        :raises ValueError: If the inputs are not a matrix with D columns.
        :raises NotImplementedError: If a covariance is asked for.
        """
        assert_params_false(
            self.predict_log_density, full_cov=full_cov, full_output_cov=full_output_cov
        )
        X, Y = self._check_inputs(data[0]), to_default_float(data[1])
        densities = predictive_log_densities(
            self._model.likelihood, X, Y, *self._propagate(X), seed=self._likelihood_seed
        )
        count = tf.cast(self.num_samples, densities.dtype)
        return tf.reduce_logsumexp(densities, axis=0) - tf.math.log(count)

    def sample_f(self, Xnew: InputData, full_cov: bool = True) -> tf.Tensor:
        """Draw the latent functions, each point from its marginal, [S, N, Q].

        :param Xnew: Inputs, [N, D].
        :param full_cov: Coherent functions are not supported; False must be asked for.
        :raises ValueError: If ``Xnew`` is not a matrix with D columns.
        :raises NotImplementedError: If a covariance is asked for.
        """
        assert_params_false(self.sample_f, full_cov=full_cov)
        X = self._check_inputs(Xnew)
        mean, variance = self._propagate(X)
        width = self._model.num_outputs
        noise = normal_at_points(X, self._function_seed, self.num_samples, width)
        return mean + tf.sqrt(variance) * noise

    def _propagate(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        def noise(seed: Seed, width: int) -> tf.Tensor:
            return normal_at_points(X, seed, self.num_samples, width)

        return self._model.propagate(X, self.num_samples, self._seed, noise)

    def _check_inputs(self, Xnew: InputData) -> tf.Tensor:
        X = to_default_float(data_input_to_tensor(Xnew))
        if X.shape.rank != 2 or not X.shape[1:].is_compatible_with([self._model.num_inputs]):
            raise ValueError(
                f"Xnew must be a matrix with {self._model.num_inputs} columns, got shape "
                f"{tuple(X.shape)}."
            )
        return X
