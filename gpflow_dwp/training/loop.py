"""The compiled training loop: many steps in one call, stopping before a bad one does harm."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.keras import tf_keras

from gpflow_dwp.base import Seed
from gpflow_dwp.models import VariationalModel, as_misfit
from gpflow_dwp.objectives import BoundTerms
from gpflow_dwp.random import fold_in
from gpflow_dwp.training._device import are_on_gpu, beside
from gpflow_dwp.training._trace import trace
from gpflow_dwp.training.adam import Adam
from gpflow_dwp.training.natural_gradient import NaturalGradientAdam
from gpflow_dwp.training.schedule import kl_weight

__all__ = ["CompiledLoop", "StepRecords"]


class StepRecords(NamedTuple):
    """What each step of one call recorded, up to and including a failed one.

    :param terms: The bound's terms, [T] and [T, L].
    :param failed: Whether the last step's bound or gradient was not finite; if so, the step was
        not taken, and the variables are those of the step before, whose bound was finite.
    :param finite_gradients: For each variable, whether the last step's gradient was finite.
    """

    terms: BoundTerms
    failed: bool
    finite_gradients: tf.Tensor


class CompiledLoop:
    """Stochastic gradient ascent on a model's bound, compiled once for any number of steps.

    :param model: The model, whose trainable variables are changed in place.
    :param next_batch: Returns a batch; traced into the loop.
    :param optimizer: A Keras optimiser, or one with its methods.
    :param annealing_steps: When the weight of the log ratios reaches 1.
    :param seed: Every step's draws depend on it and on the step alone.
    :param num_importance_samples: K of the bound.
    :param doubly_reparameterized: See :meth:`VariationalModel.elbo`.
    :param jit_compile: Whether a step is compiled with XLA; None for: if the model is on a GPU.
    """

    def __init__(
        self,
        model: VariationalModel,
        next_batch: Callable[[], RegressionData],
        optimizer: tf_keras.optimizers.Optimizer | Adam | NaturalGradientAdam,
        annealing_steps: int,
        seed: Seed,
        *,
        num_importance_samples: int = 1,
        doubly_reparameterized: bool = False,
        jit_compile: bool | None = None,
    ) -> None:
        if isinstance(optimizer, type) or not all(
            callable(getattr(optimizer, name, None)) for name in ("build", "apply_gradients")
        ):
            raise ValueError(
                "optimizer must be a Keras optimiser, an Adam or a NaturalGradientAdam, got "
                f"{optimizer!r}."
            )
        self._model = model
        self._next_batch = next_batch
        self._optimizer = optimizer
        self._annealing_steps = annealing_steps
        self._seed = seed
        self._num_importance_samples = num_importance_samples
        self._doubly_reparameterized = doubly_reparameterized
        self.variables = model.trainable_variables
        if not self.variables:
            raise ValueError("model has no trainable parameter.")
        if jit_compile is None:
            jit_compile = are_on_gpu(model.variables)
        with beside(self.variables):
            self._last_finite = [
                tf.Variable(variable, trainable=False) for variable in self.variables
            ]
            # Of 64 bits, because a GPU holds no variable of 32-bit integers.
            self._step = tf.Variable(0, dtype=tf.int64, trainable=False)
            optimizer.build(self.variables)
        # Control flow is explicit throughout; AutoGraph would only make tracing slower.
        self._compiled_step = tf.function(self._take_step, jit_compile=jit_compile, autograph=False)

    @property
    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, by name, for a checkpoint."""
        return {
            "variables": list(self.variables),
            "last_finite": self._last_finite,
            "step": self._step,
            "optimizer": self._optimizer,
        }

    def run(self, num_steps: int) -> StepRecords:
        """Take ``num_steps`` steps, or fewer if one fails.

        :raises ValueError: If a batch of a dataset does not fit the model, which is left as the
            steps before made it.
        """
        try:
            with beside(self.variables):
                data, log_ratios, finite = self._compiled_run(tf.constant(num_steps))
        except tf.errors.InvalidArgumentError as error:
            raise as_misfit(error) from error
        failed = not bool(tf.reduce_all(finite))
        if failed:
            for variable, value in zip(self.variables, self._last_finite, strict=True):
                variable.assign(value)
        return StepRecords(BoundTerms(data.numpy(), log_ratios.numpy()), failed, finite[1:].numpy())

    @functools.cached_property
    def _compiled_run(self) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, tf.Tensor]]:
        return trace(self._run, tf.TensorSpec([], tf.int32), inner="_take_step")

    def _run(self, num_steps: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        dtype = self.variables[0].dtype
        data = tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=[])
        log_ratios = tf.TensorArray(
            dtype, size=0, dynamic_size=True, element_shape=[len(self._model.layers)]
        )
        finite = tf.ones([1 + len(self.variables)], tf.bool)

        def not_done(index: tf.Tensor, finite: tf.Tensor, *_: tf.TensorArray) -> tf.Tensor:
            return tf.logical_and(index < num_steps, tf.reduce_all(finite))

        def body(
            index: tf.Tensor,
            finite: tf.Tensor,
            data: tf.TensorArray,
            log_ratios: tf.TensorArray,
        ) -> tuple[tf.Tensor, tf.Tensor, tf.TensorArray, tf.TensorArray]:
            terms, finite = self._compiled_step(self._next_batch())
            return (
                index + 1,
                finite,
                data.write(index, terms.data),
                log_ratios.write(index, terms.log_ratios),
            )

        _, finite, data, log_ratios = tf.while_loop(
            not_done, body, (tf.constant(0), finite, data, log_ratios), parallel_iterations=1
        )
        return data.stack(), log_ratios.stack(), finite

    def _take_step(self, batch: RegressionData) -> tuple[BoundTerms, tf.Tensor]:
        seed = fold_in(self._seed, tf.cast(self._step, tf.int32))
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self.variables)
            terms = self._model.elbo_terms(
                batch,
                num_importance_samples=self._num_importance_samples,
                doubly_reparameterized=self._doubly_reparameterized,
                seed=seed,
            )
            weight = kl_weight(self._step, self._annealing_steps, terms.data.dtype)
            loss = -(terms.weighted_sum(weight) + self._model.log_prior_density())
        gradients = tape.gradient(
            loss, self.variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        finite = tf.stack(
            [
                tf.math.is_finite(loss),
                *(tf.reduce_all(tf.math.is_finite(gradient)) for gradient in gradients),
            ]
        )

        def update() -> tf.Tensor:
            for saved, variable in zip(self._last_finite, self.variables, strict=True):
                saved.assign(variable)
            self._optimizer.apply_gradients(zip(gradients, self.variables, strict=True))
            return self._step.assign_add(1)

        tf.cond(tf.reduce_all(finite), update, lambda: tf.identity(self._step))
        return terms, finite
