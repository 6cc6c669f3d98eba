"""Deep kernel processes as GPflow models: the bound, and predictions."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.likelihoods import Likelihood

from gpflow_dwp.base import Array
from gpflow_dwp.kernels.check import check_gram_kernel, check_input_kernel
from gpflow_dwp.layers import GlobalInducingGPLayer, GramLayer, NearestNeighbourGPLayer, OutputLayer
from gpflow_dwp.layers.global_inducing import as_inducing_points
from gpflow_dwp.layers.propagation import expected_features, propagate_targets, sample_inducing_path
from gpflow_dwp.likelihoods.warped_gaussian import warp_of
from gpflow_dwp.models.data_checks import Batch, check_mean_function
from gpflow_dwp.models.deep_posterior import DeepPosterior
from gpflow_dwp.models.predictive import expected_log_likelihoods, predictive_log_densities
from gpflow_dwp.models.variational import VariationalModel
from gpflow_dwp.objectives import BoundTerms, evidence_lower_bound
from gpflow_dwp.random import as_seed, fold_in, split_seed

__all__ = [
    "DeepGaussianProcess",
    "DeepInverseWishartProcess",
    "DeepKernelProcess",
    "DeepWishartProcess",
]


class DeepKernelProcess(VariationalModel):
    """A stack of hidden layers that draw Gram matrices, below a Gaussian output layer.

    Further parameters are those of :class:`VariationalModel`.

    :param layers: Hidden layers, bottom first, then the output layer. The first kernel acts on
        the inputs, every other one on the Gram matrix below it.
    :param inducing_variable: Inducing inputs Z, [M, D], shared by all layers.
    :raises ValueError: If the parts do not fit together, a layer comes twice, Z is not a finite
        matrix, or a number is not a positive integer.
    """

    draws_per_row = False

    def __init__(
        self,
        layers: Sequence[GramLayer | OutputLayer],
        likelihood: Likelihood,
        inducing_variable: InducingPoints | Array | tf.Tensor,
        num_data: int,
        num_samples: int = 10,
        *,
        num_prediction_samples: int = 100,
    ) -> None:
        super().__init__(layers, likelihood, num_data, num_samples, num_prediction_samples)
        self.inducing_variable = as_inducing_points(inducing_variable)
        self._check_parts()

    @property
    def hidden_layers(self) -> list[GramLayer]:
        """The layers that draw Gram matrices, bottom first."""
        return [layer for layer in self.layers if isinstance(layer, GramLayer)]

    @property
    def output_layer(self) -> OutputLayer:
        """The Gaussian layer at the top."""
        layer = self.layers[-1] if self.layers else None
        if not isinstance(layer, OutputLayer):
            raise ValueError(f"layers must end in an output layer, got {type(layer).__name__}.")
        return layer

    @property
    def num_inputs(self) -> int:
        return int(self.inducing_variable.Z.shape[1])

    @property
    def num_outputs(self) -> int | None:
        return self.output_layer.num_outputs

    @property
    def rows(self) -> Batch | None:
        output = self.output_layer
        return None if output.rows is None else Batch(*output.rows, output.weights)

    def _set_rows(self, rows: Batch) -> None:
        self.output_layer.set_rows(*rows)

    def _estimate_terms(
        self, batch: Batch, num_importance_samples: int, seed: int | tf.Tensor | None
    ) -> BoundTerms:
        path_seed, target_seed = split_seed(as_seed(seed), 2)
        hidden, output = self.hidden_layers, self.output_layer
        points = tf.convert_to_tensor(self.inducing_variable.Z)
        warp = warp_of(self.likelihood)
        path = sample_inducing_path(hidden, output, points, self.num_samples, path_seed, warp)
        X, Y, weights = batch
        function_seed = fold_in(target_seed, 0)
        if isinstance(output, NearestNeighbourGPLayer):  # functions are integrated out
            features = expected_features(hidden, points, path.hidden, X)
            moments = output.condition_rows(path.output, features, output.ranks(X, Y))
            mean, variance = (tf.cast(moment, X.dtype) for moment in moments)
            if output.mean_function is not None:
                mean += output.mean_function(X)
            log_densities = predictive_log_densities(
                self.likelihood, X, Y, mean, variance, seed=function_seed
            )
        else:
            mean, variance = propagate_targets(hidden, output, path, X, target_seed)
            log_densities = expected_log_likelihoods(
                self.likelihood, X, Y, mean, variance, seed=function_seed
            )
        return evidence_lower_bound(
            log_densities,
            self._with_likelihood(path.log_ratios),
            num_data=self.num_data,
            weights=weights,
        )

    @tf.autograph.experimental.do_not_convert
    def posterior(
        self, num_samples: int | tf.Tensor | None = None, *, seed: int | tf.Tensor | None = None
    ) -> DeepPosterior:
        """Draw all layers at the inducing points, for predictions with the present parameters.

        :param num_samples: Number of draws, S; None for ``num_prediction_samples``. In a function
            that is compiled for any number, a scalar tensor.
        :param seed: An integer or stateless seed; None for fresh draws.
        :raises ValueError: If ``num_samples`` is not a positive integer or too large for the
            machine's memory.
        """
        num_samples = self._num_draws(num_samples)
        return DeepPosterior(
            self.hidden_layers,
            self.output_layer,
            self.likelihood,
            tf.convert_to_tensor(self.inducing_variable.Z),
            num_samples,
            as_seed(seed),
        )

    def _check_parts(self) -> None:
        if self.layers != [*self.hidden_layers, self.output_layer]:
            raise ValueError(
                "layers must be hidden layers followed by one output layer, got "
                + ", ".join(type(layer).__name__ for layer in self.layers)
                + "."
            )
        num_inducing, num_columns = map(int, self.inducing_variable.Z.shape)
        self._check_common_parts()
        kernels = [[layer.kernel] for layer in self.hidden_layers] + [[*self.output_layer.kernels]]
        for kernel in kernels[0]:
            check_input_kernel(kernel, num_columns)
        for kernel in (kernel for above in kernels[1:] for kernel in above):
            check_gram_kernel(kernel)
        for index, layer in enumerate(self.layers):
            if layer.num_inducing != num_inducing:
                given = isinstance(layer, GlobalInducingGPLayer)
                raise ValueError(
                    f"layers[{index}] is made for {layer.num_inducing} inducing points"
                    f"{', the rows of its pseudo_targets' * given}, but inducing_variable has "
                    f"{num_inducing}."
                )
        mean_function = self.output_layer.mean_function
        if mean_function is not None and self.num_outputs is not None:
            check_mean_function(mean_function, num_columns, self.num_outputs)


class DeepWishartProcess(DeepKernelProcess):
    """A deep Wishart process: Wishart layers below a Gaussian process.

    A priori each hidden layer draws G_l ~ W(K(G_{l-1})/ν, ν), and the output is a Gaussian process
    with covariance K(G_L) (Aitchison, Yang and Ober, "Deep kernel processes", 2021, equation 6 of
    Ober et al., 2023). It has the prior of a deep Gaussian process whose layers are ν wide.

    >>> import gpflow, numpy as np
    >>> from gpflow_dwp.layers import GlobalInducingGPLayer, WishartLayer
    >>> Z = np.linspace(-1.0, 1.0, 5)[:, None]
    >>> layers = [
    ...     WishartLayer(gpflow.kernels.SquaredExponential(), df=3, num_inducing=5, seed=0),
    ...     GlobalInducingGPLayer(
    ...         gpflow.kernels.SquaredExponential(), 1, pseudo_targets=np.sin(Z)
    ...     ),
    ... ]
    >>> model = DeepWishartProcess(layers, gpflow.likelihoods.Gaussian(), Z, num_data=5)
    >>> mean, variance = model.predict_f(Z)
    >>> mean.shape
    TensorShape([5, 1])

    Parameters and errors are those of :class:`DeepKernelProcess`, which also takes layers of
    different kinds.
    """


class DeepGaussianProcess(DeepKernelProcess):
    """A deep Gaussian process: layers of Gaussian process features below a Gaussian process.

    Its Gram matrices have the prior of a deep Wishart process with the same kernels and widths;
    its posterior is over the features themselves (Ober and Aitchison, "Global inducing point
    variational posteriors for Bayesian neural networks and deep Gaussian processes", 2021).

    It is made as a :class:`DeepWishartProcess` is, of hidden layers that are each a
    :class:`GlobalInducingGramLayer`.
    """


class DeepInverseWishartProcess(DeepKernelProcess):
    """A deep inverse Wishart process: inverse Wishart layers below a Gaussian process.

    A priori each hidden layer draws an inverse Wishart Gram matrix with mean K(G_{l-1}), and the
    output is a Gaussian process with covariance K(G_L) (Aitchison, Yang and Ober, "Deep kernel
    processes", 2021). Unlike the other two it has no deep Gaussian process with the same prior.

    It is made as a :class:`DeepWishartProcess` is, of hidden layers that are each an
    :class:`InverseWishartLayer`.
    """
