"""Variance of the gradient, by the estimator of the bound."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.lab.benchmarks.parameter_groups import gradients_by_group
from gpflow_dwp.validation import check_integers

if TYPE_CHECKING:
    import tensorflow as tf

    from gpflow_dwp.models import DeepWishartProcess
    from gpflow_dwp.objectives import BoundTerms

__all__ = [
    "ESTIMATORS",
    "GradientEstimator",
    "GradientSampler",
    "GroupVariance",
    "benchmark_variance",
]


class GradientEstimator(NamedTuple):
    """A way to estimate the bound of a deep Wishart process without bias.

    :param expected_log_ratio: See :class:`~gpflow_dwp.layers.WishartLayer`.
    :param stick_the_landing: See :class:`~gpflow_dwp.layers.WishartLayer`.
    :param sampled_output: Whether the output layer's u and f are drawn, and its log ratio with
        them, where they could be integrated out.
    """

    expected_log_ratio: bool
    stick_the_landing: bool
    sampled_output: bool = False


ESTIMATORS: dict[str, GradientEstimator] = {
    "closed, landing": GradientEstimator(True, True),
    "closed": GradientEstimator(True, False),
    "sampled, landing": GradientEstimator(False, True),
    "sampled": GradientEstimator(False, False),
    "closed, landing, sampled output": GradientEstimator(True, True, sampled_output=True),
}
"""The first is what the builders take by default, the third what the papers do in hidden layers."""


class GroupVariance(NamedTuple):
    """Variance of the gradient of one group of parameters.

    :param value: The sum of variances over the group's numbers: the trace of their covariance.
    :param standard_error: Of ``value``, from a limited number of gradients.
    """

    value: float
    standard_error: float


class GradientSampler:
    """Draws gradients of a model's bound, in nats, with respect to its unconstrained parameters.

    :param model: A deep Wishart process; its present parameters are used at every call.
    :param data: X [N, D] and Y [N, P]: all rows.
    :param estimator: How the bound is estimated.
    :param num_samples: S.
    :raises ValueError: If the output layer is to be sampled and has no pseudo-targets.
    """

    def __init__(
        self,
        model: DeepWishartProcess,
        data: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
        estimator: GradientEstimator,
        num_samples: int,
    ) -> None:
        import tensorflow as tf
        from gpflow.utilities import to_default_float

        from gpflow_dwp.layers import GlobalInducingGPLayer

        output = model.output_layer
        if estimator.sampled_output and not isinstance(output, GlobalInducingGPLayer):
            raise ValueError(
                "model must have pseudo-targets in its output layer for that to be sampled, got "
                f"{type(output).__name__}."
            )
        X, Y = (to_default_float(part) for part in data)
        self._model = model
        variables = model.trainable_variables

        def gradient(seed: tf.Tensor) -> list[tf.Tensor]:
            with tf.GradientTape() as tape, _options(model, estimator, num_samples):
                terms = (
                    _sampled_output_bound(model, (X, Y), seed)
                    if estimator.sampled_output
                    else model.elbo_terms((X, Y), seed=seed)
                )
                bound = terms.weighted_sum()
            return tape.gradient(
                bound, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
            )

        self._gradient = tf.function(gradient, autograph=False)

    def draw(self, num_gradients: int, seed: int = 0) -> dict[str, npt.NDArray[np.float64]]:
        """Return independent gradients of each group, [G, size of the group].

        :param num_gradients: G.
        :param seed: For the draws.
        """
        from gpflow_dwp.random import as_seed, fold_in

        gradients = [
            self._gradient(fold_in(as_seed(seed), index)) for index in range(num_gradients)
        ]
        return gradients_by_group(self._model, gradients)


def benchmark_variance(
    model: DeepWishartProcess,
    data: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    *,
    num_steps: int = 2_000,
    num_samples: Sequence[int] = (1, 2, 5, 10),
    num_gradients: int = 100,
    estimators: Mapping[str, GradientEstimator] = ESTIMATORS,
    seed: int = 0,
    report: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:
    """Measure the variance of gradients before and after training.

    Draws of hidden layers are the same for all estimators of one S.

    :param model: A deep Wishart process at its start; it is trained on, by :func:`fit`'s defaults.
    :param data: X [N, D] and Y [N, P].
    :param num_steps: Steps of training in between; 0 for none, and the start alone.
    :param num_samples: Values of S.
    :param num_gradients: Gradients that each variance is estimated from.
    :param estimators: What is compared, by name.
    :param seed: For the draws and for training.
    :param report: Called with a line of progress.
    :return: For each combination "step", "estimator" (its name), "num_samples", and under
        "variances" a :class:`GroupVariance` for each group of parameters.
    :raises ValueError: If a count is not an integer, or too small; or if the output layer is to be
        sampled and has no pseudo-targets.
    """
    check_integers(at_least=2, num_gradients=num_gradients)
    check_integers(at_least=0, num_steps=num_steps)
    for value in num_samples:
        check_integers(num_samples=value)
    from gpflow_dwp.training import fit

    samplers = {
        (name, count): GradientSampler(model, data, estimator, count)
        for name, estimator in estimators.items()
        for count in num_samples
    }
    rows = []
    for step in (0, num_steps) if num_steps else (0,):
        if step:
            fit(model, data, num_steps, seed=seed, progress=False)
        for (name, count), sampler in samplers.items():
            gradients = sampler.draw(num_gradients, seed)
            variances = {group: _variance(values) for group, values in gradients.items()}
            rows.append(
                {"step": step, "estimator": name, "num_samples": count, "variances": variances}
            )
            report(f"step {step}, {name}, S = {count}")
    return rows


def _sampled_output_bound(
    model: DeepWishartProcess, data: tuple[tf.Tensor, tf.Tensor], seed: tf.Tensor
) -> BoundTerms:
    """The terms of the bound as ``model.elbo_terms`` has them, but for the output's draws."""
    import tensorflow as tf

    from gpflow_dwp.lab.benchmarks._sampled_output import SampledOutputLayer
    from gpflow_dwp.layers import propagate_targets, sample_inducing_path
    from gpflow_dwp.models import expected_log_likelihoods
    from gpflow_dwp.objectives import evidence_lower_bound
    from gpflow_dwp.random import fold_in, normal, split_seed

    path_seed, target_seed = split_seed(seed, 2)
    output_seed, noise_seed = split_seed(fold_in(seed, -1), 2)
    hidden, num_samples = model.hidden_layers, model.num_samples
    output = SampledOutputLayer(model.output_layer, output_seed)
    points = tf.convert_to_tensor(model.inducing_variable.Z)
    path = sample_inducing_path(hidden, output, points, num_samples, path_seed)
    mean, variance = propagate_targets(hidden, output, path, data[0][:, None], target_seed)
    # The derivative of a root of zero is infinite.
    floor = tf.constant(np.finfo(mean.dtype.as_numpy_dtype).eps, mean.dtype)
    deviation = tf.sqrt(tf.maximum(variance, floor))[..., None]
    values = mean + deviation * normal(tf.shape(mean), noise_seed, mean.dtype)
    return evidence_lower_bound(
        expected_log_likelihoods(model.likelihood, *data, values, tf.zeros_like(variance)),
        path.log_ratios,
        num_data=model.num_data,
    )


@contextlib.contextmanager
def _options(
    model: DeepWishartProcess, estimator: GradientEstimator, num_samples: int
) -> Iterator[None]:
    """Set options of the model, which are read when a function is traced."""
    from gpflow_dwp.layers import WishartLayer

    layers = [layer for layer in model.hidden_layers if isinstance(layer, WishartLayer)]
    kept = model.num_samples, [(x.expected_log_ratio, x.stick_the_landing) for x in layers]
    model.num_samples = num_samples
    for layer in layers:
        layer.expected_log_ratio = estimator.expected_log_ratio
        layer.stick_the_landing = estimator.stick_the_landing
    try:
        yield
    finally:
        model.num_samples = kept[0]
        for layer, (expected, landing) in zip(layers, kept[1], strict=True):
            layer.expected_log_ratio = expected
            layer.stick_the_landing = landing


def _variance(gradients: npt.NDArray[np.float64]) -> GroupVariance:
    """The trace of the covariance of rows."""
    num = len(gradients)
    squares = np.sum((gradients - gradients.mean(axis=0)) ** 2, axis=1) * num / (num - 1)
    return GroupVariance(float(squares.mean()), float(squares.std(ddof=1) / np.sqrt(num)))
