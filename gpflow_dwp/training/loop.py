"""The compiled training loop: many steps in one call, stopping before a bad one does harm."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.keras import tf_keras

from gpflow_dwp.base import Seed
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.models.data_checks import as_misfit
from gpflow_dwp.objectives import BoundTerms, Estimator
from gpflow_dwp.random import fold_in
from gpflow_dwp.training._batches import Batches
from gpflow_dwp.training._kept import find_kept, keep
from gpflow_dwp.training._structure import structure_of
from gpflow_dwp.training._trace import trace
from gpflow_dwp.training.adam import Adam
from gpflow_dwp.training.distribution import Replicas
from gpflow_dwp.training.natural_gradient import NaturalGradientAdam
from gpflow_dwp.training.schedule import kl_weights

__all__ = ["CompiledLoop", "StepRecords", "beside", "joined"]


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


def joined(records: Sequence[StepRecords]) -> BoundTerms:
    """Return the terms of all steps of several calls."""
    return BoundTerms(
        np.concatenate([record.terms.data for record in records]),
        np.concatenate([record.terms.log_ratios for record in records]),
    )


def beside(variables: Sequence[tf.Variable]) -> contextlib.AbstractContextManager[None]:
    """Place on the device of ``variables`` whatever is made within; nowhere if they have several.

    XLA takes no variable from another device than the one that it compiles for.
    """
    devices = {variable.device for variable in variables}
    return tf.device(devices.pop()) if len(devices) == 1 else contextlib.nullcontext()


@dataclasses.dataclass(eq=False)
class CompiledLoop:
    """Stochastic gradient ascent on a model's bound, compiled once for any number of steps.

    :param model: The model, whose trainable variables are changed in place.
    :param next_batch: Returns a batch; traced into the loop.
    :param optimizer: A Keras optimiser, or one with its methods.
    :param annealing_steps: When the weight of the log ratios reaches 1.
    :param seed: Every step's draws depend on it and on the step alone.
    :param estimator: Of the bound.
    :param jit_compile: Whether a step is compiled with XLA.
    :param replicas: Those of the model that share every step; None on one device.
    """

    model: VariationalModel
    next_batch: Callable[[], RegressionData]
    optimizer: tf_keras.optimizers.Optimizer | Adam | NaturalGradientAdam
    annealing_steps: int
    seed: Seed
    estimator: Estimator
    jit_compile: bool = False
    replicas: Replicas | None = None

    def __post_init__(self) -> None:
        is_gpflows = isinstance(self.optimizer, gpflow.optimizers.NaturalGradient)
        if (
            isinstance(self.optimizer, type)
            or is_gpflows
            or not all(
                callable(getattr(self.optimizer, name, None))
                for name in ("build", "apply_gradients")
            )
        ):
            raise ValueError(
                "optimizer must be a Keras optimiser, an Adam or a NaturalGradientAdam, got "
                f"{self.optimizer!r}."
            )
        self.variables = self.model.trainable_variables
        if not self.variables:
            raise ValueError("model has no trainable parameter.")
        if self.replicas is not None:
            self.replicas.check_optimizer(self.optimizer)
        with self._place():
            self._last_finite = [
                tf.Variable(variable, trainable=False) for variable in self.variables
            ]
            # Of 64 bits, because a GPU holds no variable of 32-bit integers.
            self._step = tf.Variable(0, dtype=tf.int64, trainable=False)
            self.optimizer.build(self.variables)

    @property
    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, by name, for a checkpoint."""
        return {
            "variables": list(self.variables),
            "last_finite": self._last_finite,
            "step": self._step,
            "optimizer": self.optimizer,
        }

    def run(self, num_steps: int) -> StepRecords:
        """Take ``num_steps`` steps, or fewer if one fails.

        :raises ValueError: If a batch of a dataset does not fit the model, which is left as the
            steps before made it, or there is none.
        """
        steps = self._step + tf.range(num_steps, dtype=tf.int64)
        inputs = _StepInputs(
            kl_weights(steps, self.annealing_steps),
            self._settings(tf.constant(num_steps)),
            tf.convert_to_tensor(self.seed),
            tf.constant(int(self.model.num_data), tf.int64),
        )
        try:
            with self._place():
                data, log_ratios, finite = self._compiled_run(*inputs)
        except tf.errors.InvalidArgumentError as error:
            raise as_misfit(error) from error
        except tf.errors.OutOfRangeError as error:
            raise ValueError(
                "data must hold a batch or more every time that they are gone through, got none: a "
                "generator must begin anew whenever it is called."
            ) from error
        failed = not bool(tf.reduce_all(finite))
        if failed:
            for variable, value in zip(self.variables, self._last_finite, strict=True):
                variable.assign(value)
        return StepRecords(BoundTerms(data.numpy(), log_ratios.numpy()), failed, finite[1:].numpy())

    def _place(self) -> contextlib.AbstractContextManager[Any]:
        return beside(self.variables) if self.replicas is None else self.replicas.scope()

    @functools.cached_property
    def _settings(self) -> Callable[[tf.Tensor], tf.Tensor]:
        """Settings of an :class:`Adam` in the next steps; zeros where there is another one."""
        if not isinstance(self.optimizer, Adam):
            return lambda num_steps: tf.zeros([num_steps, 4], tf.float64)
        if not callable(self.optimizer.learning_rate):
            return self.optimizer.settings
        return trace(self.optimizer.settings, tf.TensorSpec([], tf.int32))

    @functools.cached_property
    def _compiled_run(self) -> Callable[..., tuple[tf.Tensor, tf.Tensor, tf.Tensor]]:
        """The function of :meth:`_run`, traced now unless one of such a model is kept."""
        kept_under = None if tf.config.functions_run_eagerly() else self._dependencies()
        if kept_under is None:
            return self._traced()
        key, resources = kept_under
        kept = find_kept(key)
        if kept is None:
            traced = self._traced()
            kept = keep(key, traced, resources)
            if kept is None:
                return traced
        return lambda *inputs: kept(inputs, resources)

    def _traced(self) -> Callable[..., tuple[tf.Tensor, tf.Tensor, tf.Tensor]]:
        scalar, vector = tf.TensorSpec([], tf.int64), tf.TensorSpec([None], tf.float64)
        rows, seed = tf.TensorSpec([None, 4], tf.float64), tf.TensorSpec([2], self.seed.dtype)
        inner = "_take_step" if self.replicas is None else "_differentiate"
        return trace(self._run, vector, rows, seed, scalar, inner=inner)

    def _dependencies(self) -> tuple[Hashable, list[tf.Tensor]] | None:
        """What the compiled function depends on, and what it uses; None if that is not known."""
        if self.replicas is not None:
            return None
        structure, batches = structure_of(self.model), self.next_batch
        optimizer = self.optimizer
        if structure is None or not isinstance(batches, Batches) or type(optimizer) is not Adam:
            return None
        key = (
            structure.key,
            batches.key,
            self.estimator,
            self.jit_compile,
            repr(gpflow.config.config()),
        )
        moments = [optimizer.iterations, optimizer.means, optimizer.square_means]
        used = [*structure.variables, *self._last_finite, self._step, *moments, *batches.resources]
        return key, [getattr(each, "handle", each) for each in used]

    def _run(
        self, weights: tf.Tensor, settings: tf.Tensor, seed: Seed, num_data: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        take_step = self._compiled_step()
        num_steps = tf.shape(weights)[0]
        dtype = self.variables[0].dtype
        data = tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=[])
        log_ratios = tf.TensorArray(
            dtype, size=0, dynamic_size=True, element_shape=[self.model.num_log_ratios]
        )
        finite = tf.ones([1 + len(self.variables)], tf.bool)

        def not_done(index: tf.Tensor, *_: tf.Tensor | tf.TensorArray) -> tf.Tensor:
            return index < num_steps

        def body(
            index: tf.Tensor,
            finite: tf.Tensor,
            data: tf.TensorArray,
            log_ratios: tf.TensorArray,
        ) -> tuple[tf.Tensor, tf.Tensor, tf.TensorArray, tf.TensorArray]:
            inputs = _StepInputs(weights[index], settings[index], seed, num_data)
            terms, finite, was_taken = take_step(self.next_batch(), inputs)
            return (
                # An integer of 32 bits is on the host, beside a GPU, where the loop is decided on.
                index + was_taken + (1 - was_taken) * num_steps,
                finite,
                data.write(index, terms.data),
                log_ratios.write(index, terms.log_ratios),
            )

        _, finite, data, log_ratios = tf.while_loop(
            not_done, body, (tf.constant(0), finite, data, log_ratios), parallel_iterations=1
        )
        return data.stack(), log_ratios.stack(), finite

    def _compiled_step(
        self,
    ) -> Callable[[RegressionData, _StepInputs], tuple[BoundTerms, tf.Tensor, tf.Tensor]]:
        def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
            return tf.function(function, jit_compile=self.jit_compile, autograph=False)

        if self.replicas is None:
            return compiled(self._take_step)
        # XLA compiles nothing in which replicas wait for each other.
        differentiate = compiled(self._differentiate)
        return functools.partial(self._take_step_together, self.replicas, differentiate)

    def _take_step(
        self, batch: RegressionData, inputs: _StepInputs
    ) -> tuple[BoundTerms, tf.Tensor, tf.Tensor]:
        outcome = self._differentiate(batch, self._at_step(inputs))
        return self._guarded(outcome, lambda: self._update(outcome.gradients, inputs.settings))

    def _take_step_together(
        self,
        replicas: Replicas,
        differentiate: Callable[[RegressionData, _StepInputs], _Outcome],
        batch: RegressionData,
        inputs: _StepInputs,
    ) -> tuple[BoundTerms, tf.Tensor, tf.Tensor]:
        def of_share(batch: RegressionData, seed: Seed, num_data: tf.Tensor) -> _Outcome:
            return differentiate(batch, inputs._replace(seed=seed, num_data=num_data))

        outcome = replicas.reduce(of_share, batch, self._at_step(inputs).seed, inputs.num_data)
        return self._guarded(
            replicas.first(outcome),
            lambda: replicas.first(replicas.run(self._update, outcome.gradients, inputs.settings)),
        )

    def _at_step(self, inputs: _StepInputs) -> _StepInputs:
        return inputs._replace(seed=fold_in(inputs.seed, tf.cast(self._step, tf.int32)))

    def _differentiate(self, batch: RegressionData, inputs: _StepInputs) -> _Outcome:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self.variables)
            with _holding(self.model, inputs.num_data):
                terms = self.model.elbo_terms(batch, estimator=self.estimator, seed=inputs.seed)
            loss = -(terms.weighted_sum(inputs.kl_weight) + self.model.log_prior_density())
        gradients = tape.gradient(
            loss, self.variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        return _Outcome(terms, loss, gradients)

    def _guarded(
        self, outcome: _Outcome, update: Callable[[], tf.Tensor]
    ) -> tuple[BoundTerms, tf.Tensor, tf.Tensor]:
        """Change variables only if all numbers are finite.

        :return: The bound's terms, whether each part of it was finite, and 1 if the step was taken.
        """
        finite = tf.stack(
            [
                tf.math.is_finite(outcome.loss),
                *(tf.reduce_all(tf.math.is_finite(gradient)) for gradient in outcome.gradients),
            ]
        )
        was_taken = tf.cond(tf.reduce_all(finite), update, lambda: tf.constant(0))
        return outcome.terms, finite, was_taken

    def _update(self, gradients: Sequence[tf.Tensor], settings: tf.Tensor) -> tf.Tensor:
        for saved, variable in zip(self._last_finite, self.variables, strict=True):
            saved.assign(variable)
        pairs = zip(gradients, self.variables, strict=True)
        # Gradients of replicas are averages by now.
        options = {} if self.replicas is None else {"skip_gradients_aggregation": True}
        if isinstance(self.optimizer, Adam):
            self.optimizer.apply_gradients(pairs, settings, **options)
        else:
            self.optimizer.apply_gradients(pairs, **options)
        self._step.assign_add(1)
        return tf.constant(1)


class _Outcome(NamedTuple):
    """A bound's terms, what is minimised (the annealed bound and the log prior density, negative),
    and its gradient in each variable."""

    terms: BoundTerms
    loss: tf.Tensor
    gradients: list[tf.Tensor]


class _StepInputs(NamedTuple):
    """What a compiled step is told anew in every run; in a call, of all steps."""

    kl_weight: tf.Tensor
    settings: tf.Tensor  # those of an Adam
    seed: Seed
    num_data: tf.Tensor


@contextlib.contextmanager
def _holding(model: VariationalModel, num_data: tf.Tensor) -> Iterator[None]:
    """Let the size of a model's data be an argument of what is compiled."""
    size, model.num_data = model.num_data, num_data
    try:
        yield
    finally:
        model.num_data = size
