"""Neural networks with matrix-variate Gaussian posteriors, as GPflow models."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow import default_float
from gpflow.likelihoods import Gaussian, Likelihood, StudentT

from gpflow_dwp.base import Array, Seed, TrainingData
from gpflow_dwp.likelihoods import GammaGaussian
from gpflow_dwp.likelihoods.observed import observed
from gpflow_dwp.matrix_gaussian.covariance_root import CovarianceFamily
from gpflow_dwp.matrix_gaussian.layer import MatrixGaussianLayer
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.data_checks import Batch, check_observations
from gpflow_dwp.models.mixture_posterior import MixturePosterior, snapshot
from gpflow_dwp.models.predictive import expected_log_likelihoods
from gpflow_dwp.objectives import BoundTerms, evidence_lower_bound
from gpflow_dwp.random import as_seed, fold_in, normal, split_seed
from gpflow_dwp.validation import (
    as_weighted,
    check_arrays,
    check_choice,
    check_instance,
    check_integers,
    check_positive,
)

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "MatrixGaussianNetwork",
    "NetworkPosterior",
    "build_matrix_gaussian_network",
]

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

    With pseudo-data, what :meth:`elbo` returns is the paper's objective (11), which is no lower
    bound of the evidence and may exceed it: the data's term is under the posterior given the
    pseudo-data, q(W | Ã, B̃), the divergence is that of q(W). It is not to be compared with the
    bounds of other models. Without pseudo-data it is a lower bound.

    Further parameters are those of :class:`VariationalModel`.

    :param layers: Bottom first; each one's inputs are the outputs of the one below.
    :param activation: Activation function between the layers.
    :param output_loc: Added to the outputs, [Q] or a number.
    :param output_scale: Multiplies the outputs, positive, [Q] or a number.
    :raises ValueError: If the parts do not fit together, a layer comes twice, or a number is not a
        positive integer or too large for the machine's memory.
    """

    def __init__(
        self,
        layers: Sequence[MatrixGaussianLayer],
        likelihood: Likelihood,
        num_data: int,
        num_samples: int = 10,
        *,
        activation: Activation = "relu",
        output_loc: npt.ArrayLike = 0.0,
        output_scale: npt.ArrayLike = 1.0,
        num_prediction_samples: int = 100,
    ) -> None:
        super().__init__(layers, likelihood, num_data, num_samples, num_prediction_samples)
        self.activation = activation
        self._check_parts()
        outputs = [self.num_outputs]
        self.output_loc: Array = np.broadcast_to(output_loc, outputs).astype(default_float())
        self.output_scale: Array = np.broadcast_to(output_scale, outputs).astype(default_float())

    @property
    def objective_name(self) -> str:
        has_pseudo_data = any(layer.num_pseudo_data for layer in self.layers)
        return "objective" if has_pseudo_data else "ELBO"

    @property
    def num_inputs(self) -> int:
        return self.layers[0].num_inputs

    @property
    def num_outputs(self) -> int:
        return self.layers[-1].num_outputs

    def _estimate_terms(
        self, batch: Batch, num_importance_samples: int, seed: int | tf.Tensor | None
    ) -> BoundTerms:
        X, Y, weights = batch
        shape = [self.num_samples, tf.shape(X)[0]]

        def noise(seed: Seed, width: int) -> tf.Tensor:
            return normal([*shape, width], seed, X.dtype)

        seed = as_seed(seed)
        mean, variance = self.propagate(X, self.num_samples, seed, noise)
        ratios = [-layer.kl_divergence() for layer in self.layers]
        return evidence_lower_bound(
            expected_log_likelihoods(
                self.likelihood, X, Y, mean, variance, seed=fold_in(seed, len(self.layers))
            ),
            self._with_likelihood(ratios),
            num_data=self.num_data,
            weights=weights,
        )

    @tf.autograph.experimental.do_not_convert
    def posterior(
        self, num_samples: int | tf.Tensor | None = None, *, seed: int | tf.Tensor | None = None
    ) -> NetworkPosterior:
        return NetworkPosterior(self, self._num_draws(num_samples), as_seed(seed))

    def propagate(
        self, X: tf.Tensor, num_samples: int, seed: Seed, noise: Noise | None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return mean and variance of the outputs, given draws of all layers below.

        :param X: Inputs, [N, D].
        :param num_samples: Number of joint draws, S.
        :param seed: For pseudo-data, hidden units and weights.
        :param noise: Standard normal numbers [S, N, width], from a seed and a width, with which
            each point's hidden units are drawn; None to draw weights, which all points share.
        :return: The mean, [S, N, Q], and the variance, [S, N, Q], or without ``noise`` the
            covariance between the points, [S, Q, N, N].
        """
        *seeds, output_seed = split_seed(seed, len(self.layers))
        values = self._hidden_units(X, num_samples, seeds, noise)
        pseudo_seed, _ = split_seed(output_seed, 2)
        output = self.layers[-1].propagate(values, num_samples, pseudo_seed, full_cov=noise is None)
        num_points, num_outputs = tf.shape(X)[0], self.num_outputs
        shape = [num_samples, num_points, num_outputs]
        static = [None if tf.is_tensor(num_samples) else num_samples, None, num_outputs]
        mean = output.mean * self.output_scale + self.output_loc
        mean = tf.ensure_shape(tf.broadcast_to(mean, shape), static)
        root = self.layers[-1].column_root.operator().to_dense() * self.output_scale[:, None]
        variances = tf.reduce_sum(tf.square(root), axis=-1)  # of each output, over row variances
        if noise is None:
            covariance = output.row_variance[:, None] * variances[:, None, None]
            shape = [num_samples, num_outputs, num_points, num_points]
            return mean, tf.broadcast_to(covariance, shape)
        variance = output.row_variance[..., None] * variances
        return mean, tf.ensure_shape(tf.broadcast_to(variance, shape), static)

    def sample(self, X: tf.Tensor, num_samples: int, seed: Seed, noise: Noise | None) -> tf.Tensor:
        """Draw the outputs, [S, N, Q]; parameters as for :meth:`propagate`."""
        *seeds, own = split_seed(seed, len(self.layers))
        values = self._hidden_units(X, num_samples, seeds, noise)
        units = _sample_units(self.layers[-1], values, num_samples, own, noise)
        return units * self.output_scale + self.output_loc

    def _hidden_units(
        self, X: tf.Tensor, num_samples: int, seeds: Sequence[Seed], noise: Noise | None
    ) -> tf.Tensor:
        values = X[None]
        for layer, own in zip(self.layers[:-1], seeds, strict=True):
            units = _sample_units(layer, values, num_samples, own, noise)
            values = ACTIVATIONS[self.activation](units)
        return values

    def _check_parts(self) -> None:
        if not self.layers:
            raise ValueError("layers must hold at least one layer, got none.")
        for layer in self.layers:
            check_instance(MatrixGaussianLayer, layers=layer)
        self._check_common_parts()
        for below, above in zip(self.layers, self.layers[1:], strict=False):
            if below.num_outputs != above.num_inputs:
                raise ValueError(
                    f"layers must fit: num_outputs={below.num_outputs} is below a layer of "
                    f"num_inputs={above.num_inputs}."
                )
        check_choice(ACTIVATIONS, activation=self.activation)


def _sample_units(
    layer: MatrixGaussianLayer, values: tf.Tensor, num_samples: int, seed: Seed, noise: Noise | None
) -> tf.Tensor:
    if noise is None:
        return layer.sample_functions(values, num_samples, seed)
    pseudo_seed, unit_seed = split_seed(seed, 2)
    preactivation = layer.propagate(values, num_samples, pseudo_seed)
    return layer.sample(preactivation, noise(unit_seed, layer.num_outputs))


class NetworkPosterior(MixturePosterior):
    """Mixtures over S draws of everything below the output layer: see :class:`MixturePosterior`.

    For marginal predictions each point's hidden units are drawn on their own, as in training; for
    covariances between points, and coherent functions, weights are drawn.
    """

    def __init__(self, model: MatrixGaussianNetwork, num_samples: int, seed: Seed) -> None:
        self._model = model = snapshot(model)
        self._seed, function_seed = split_seed(seed, 2)
        super().__init__(
            model.likelihood,
            num_inputs=model.num_inputs,
            num_outputs=model.num_outputs,
            num_inducing=max(layer.num_outputs for layer in model.layers),
            num_samples=num_samples,
            function_seed=function_seed,
        )

    def _sample_functions(self, X: tf.Tensor, *, full_cov: bool) -> tf.Tensor:
        def own(seed: Seed, width: int) -> tf.Tensor:
            return normal([self.num_samples, tf.shape(X)[0], width], seed, X.dtype)

        noise = None if full_cov else own
        return self._model.sample(X, self.num_samples, self._seed, noise)

    def _propagate(
        self, X: tf.Tensor, *, full_cov: bool = False, mixed: bool = True
    ) -> tuple[tf.Tensor, tf.Tensor]:
        noise = None if full_cov else functools.partial(self._shared_normal, X)
        return self._model.propagate(X, self.num_samples, self._seed, noise)


def build_matrix_gaussian_network(
    data: TrainingData,
    depth: int = 2,
    *,
    width: int = 50,
    num_pseudo_data: int | Sequence[int] = 10,
    largest_dropout: float = 0.005,
    row_covariance: CovarianceFamily = "diagonal",
    column_covariance: CovarianceFamily = "diagonal",
    zero_mean: bool = False,
    learn_precision: bool = True,
    activation: Activation = "relu",
    likelihood: Likelihood | None = None,
    num_samples: int = 10,
    target_scale: float = 1.0,
    seed: int = 0,
) -> MatrixGaussianNetwork:
    """Build a network with the regression settings of Louizos and Welling (2016, section 4.1).

    The paper standardises inputs on the training rows; these defaults expect that. Targets need
    not be: the outputs are scaled inside.

    :param data: Training inputs [N, D] and observations [N, P].
    :param depth: Number of weight matrices: ``depth - 1`` hidden layers.
    :param width: Units of each hidden layer.
    :param num_pseudo_data: Pseudo-data pairs of each layer, or of each in turn, also where a layer
        has fewer inputs.
    :param largest_dropout: Upper bound of the pseudo-data's dropout rate. The paper names 0.005 and
        0.05 for regression, without saying which is for what, 0.2 for its toy problems and 0.25 for
        MNIST; the authors' published example, yacht, has 0.005.
    :param row_covariance: See :class:`MatrixGaussianLayer`, also for the next three.
    :param column_covariance: Family of V^½.
    :param zero_mean: Whether means are zero.
    :param learn_precision: Whether the priors' precisions have posteriors.
    :param activation: Activation function between the layers.
    :param likelihood: None for a Gaussian one, whose precision has a Gam(6, 6) prior in the
        targets' raw units and a posterior that counts the observations. GPflow's Gaussian and
        Student's t likelihood get scaled outputs as well.
    :param num_samples: Number of draws in each training step, S; the paper's number is 1.
    :param target_scale: What one unit of the observations is in raw units: the standard deviation
        if they have been standardised.
    :param seed: Seed of the starting values.
    :raises ValueError: If an argument is not one of its choices, not a positive integer, or does
        not fit the data; or if the data are not two finite matrices of one length.
    """
    X, Y, weights = as_weighted(data)
    X, Y = check_arrays(X, Y, may_miss=True)
    check_integers(depth=depth, width=width, num_samples=num_samples)
    check_integers(at_least=0, seed=seed)
    check_positive(target_scale=target_scale)
    counts = num_pseudo_data if isinstance(num_pseudo_data, Sequence) else [num_pseudo_data] * depth
    if len(counts) != depth:
        raise ValueError(f"num_pseudo_data must hold depth={depth} numbers, got {len(counts)}.")
    if likelihood is None:
        seen = np.sum(np.isfinite(Y), axis=1)
        count = float(np.sum(seen if weights is None else np.asarray(weights) * seen))
        likelihood = GammaGaussian(6.0, 6.0 / target_scale**2, count)
    check_instance(Likelihood, likelihood=likelihood)
    check_observations(likelihood, Y)
    widths = [X.shape[1], *[width] * (depth - 1), observed(likelihood).num_functions(Y.shape[1])]
    seeds = np.random.SeedSequence(seed).generate_state(depth)
    layers = [
        MatrixGaussianLayer(
            *sizes,
            row_covariance=row_covariance,
            column_covariance=column_covariance,
            num_pseudo_data=pairs,
            largest_dropout=largest_dropout,
            zero_mean=zero_mean,
            learn_precision=learn_precision,
            seed=int(own),
        )
        for *sizes, pairs, own in zip(widths, widths[1:], counts, seeds, strict=False)
    ]
    scaling = {}
    if isinstance(likelihood, (GammaGaussian, Gaussian, StudentT)):
        deviation = np.nanstd(Y, axis=0)
        scale = np.where(deviation > 0.0, deviation, 1.0)
        scaling = {"output_loc": np.nanmean(Y, axis=0), "output_scale": scale}
    return MatrixGaussianNetwork(
        layers, likelihood, len(X), num_samples, activation=activation, **scaling
    )
