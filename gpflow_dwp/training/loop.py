"""The compiled training loop: many steps in one call, stopping before a bad one does harm."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.keras import tf_keras
from gpflow.utilities import reset_cache_bijectors

from gpflow_dwp.base import Seed
from gpflow_dwp.likelihoods.gamma_gaussian import GammaPrecision
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.objectives import BoundTerms
from gpflow_dwp.random import fold_in
from gpflow_dwp.training._batches import Batches
from gpflow_dwp.training._structure import holding, may_draw_globally, structure_of
from gpflow_dwp.training.distribution import Devices
from gpflow_dwp.training.optimizers import (
    Adam,
    AdamState,
    NaturalGradientAdam,
    adam_step,
    kl_weights,
)

__all__ = ["CompiledLoop", "forget_steps"]

_MOST_KEPT = 8
_OPTIMIZERS = (tf_keras.optimizers.Optimizer, Adam, NaturalGradientAdam)

_kept: OrderedDict[Hashable, Callable[..., Any]] = OrderedDict()
"""Steps by what they depend on besides arrays, so that models of one structure share them."""

_lock = threading.Lock()


def forget_steps() -> None:
    """Let the next run compile its step anew."""
    with _lock:
        _kept.clear()


class _State(NamedTuple):
    """What a step makes anew.

    :param values: All that is trained, as one vector.
    :param previous: The values before the last step: the last whose bound was finite.
    :param optimizer: An :class:`AdamState`; nothing for an optimiser that keeps its own.
    :param batches: The place in the data.
    :param step: Number of steps taken, [].
    """

    values: tf.Tensor
    previous: tf.Tensor
    optimizer: tuple[tf.Tensor, ...]
    batches: tuple[tf.Tensor, ...]
    step: tf.Tensor


class _Inputs(NamedTuple):
    """What a run gives its steps: in a call one row for each, in a step its own.

    :param kl_weight: Weight of the log ratios.
    :param settings: Those of an :class:`Adam`.
    """

    kl_weight: tf.Tensor
    settings: tf.Tensor
    seed: Seed
    num_data: tf.Tensor


class _Outcome(NamedTuple):
    """A bound's terms, what is minimised (the annealed bound and the log prior density, negative),
    and its gradient in all that is trained; in log b of a Gamma posterior over its a."""

    terms: BoundTerms
    loss: tf.Tensor
    gradient: tf.Tensor


@dataclasses.dataclass(eq=False)
class CompiledLoop:
    """Stochastic gradient ascent on a model's bound, compiled once for any number of steps.

    A step is a function of arrays: values of variables, state of the optimiser, data. Models that
    differ in these alone share what is compiled.

    Rates b of Gamma posteriors are not the optimiser's: gradients by log b are a (b̂ - b) / b and
    tell the best one, b̂. A step moves b towards it by the batch's share of all data.

    :param model: The model, whose trainable variables are changed in place.
    :param batches: Where batches come from.
    :param optimizer: A Keras optimiser, or one of this package.
    :param annealing_steps: When the weight of the log ratios reaches 1.
    :param seed: Every step's draws depend on it and on the step alone.
    :param num_importance_samples: See :func:`fit`.
    :param jit_compile: Whether a step is compiled with XLA.
    :param devices: Where steps are taken; None for where the model is.
    :ivar precisions: Of Gamma posteriors whose rates are trained.
    :ivar failed: Whether the last step's bound or gradient was not finite; if so, it was not taken,
        and the variables are those of the step before, whose bound was finite.
    """

    model: VariationalModel
    batches: Batches
    optimizer: tf_keras.optimizers.Optimizer | Adam | NaturalGradientAdam
    annealing_steps: int
    seed: Seed
    num_importance_samples: int = 1
    jit_compile: bool = False
    devices: Devices | None = None
    failed: bool = dataclasses.field(default=False, init=False)

    def __post_init__(self) -> None:
        is_natural = isinstance(self.optimizer, gpflow.optimizers.NaturalGradient)
        if is_natural or not isinstance(self.optimizer, _OPTIMIZERS):
            raise ValueError(
                "optimizer must be a Keras optimiser, an Adam or a NaturalGradientAdam, got "
                f"{self.optimizer!r}."
            )
        self._devices = self.devices or Devices(self.model, None)
        self.precisions = [
            part
            for part in self.model.submodules
            if isinstance(part, GammaPrecision) and part.is_counted
            if part.rate.trainable and part.rate.prior is None
        ]
        rates = {id(each.rate.unconstrained_variable) for each in self.precisions}
        self.variables = sorted(self.model.trainable_variables, key=lambda each: id(each) in rates)
        self._optimized = self.variables[: len(self.variables) - len(rates)]
        if not self.variables:
            raise ValueError("model has no trainable parameter.")
        self._devices.check_optimizer(self.optimizer)
        of_parameters = {id(each.unconstrained_variable) for each in self.model.parameters}
        self._fixed = [
            variable
            for variable in self.model.variables
            if not variable.trainable and id(variable) in of_parameters
        ]
        self._sizes = [variable.shape.num_elements() for variable in self.variables]
        self._priors = [each for each in self.model.trainable_parameters if each.prior is not None]
        with self._devices.scope():
            self.optimizer.build(self._optimized)
            self._previous = tf.Variable(self._pack(self.variables), trainable=False)
            # Of 64 bits, because a GPU holds no variable of 32-bit integers.
            self._step = tf.Variable(0, dtype=tf.int64, trainable=False)

    @property
    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, by name, for a checkpoint."""
        state = {
            "variables": list(self.variables),
            "previous": self._previous,
            "step": self._step,
            "optimizer": self.optimizer,
        }
        return {**state, "batches": self.batches.place} if self.batches.place else state

    def run(self, num_steps: int) -> BoundTerms:
        """Take ``num_steps`` steps, or fewer if one fails, and return the terms of each."""
        with self._devices.scope():
            steps = self._step + tf.range(num_steps, dtype=tf.int64)
            inputs = _Inputs(
                kl_weights(steps, self.annealing_steps),
                self._settings(tf.constant(num_steps)),
                tf.convert_to_tensor(self.seed),
                tf.constant(int(self.model.num_data), tf.int64),
            )
            kept = self._places()
            before = tf.nest.map_structure(tf.convert_to_tensor, kept)
            before = before._replace(values=self._pack(self.variables))
            fixed = [tf.convert_to_tensor(variable) for variable in self._fixed]
            state, terms, self._gradient = self._compiled_run(
                before, fixed, self.batches.arrays, inputs
            )
        self.failed = int(state.step - before.step) < len(terms.data)
        for variable, value in zip(self.variables, self._unpack(state.values), strict=True):
            variable.assign(value)
        for variable, value in zip(tf.nest.flatten(kept), tf.nest.flatten(state), strict=True):
            variable.assign(value)
        return BoundTerms(*(term.numpy() for term in terms))

    def without_finite_gradient(self) -> list[tf.Variable]:
        """Return the variables whose gradient was not finite in the last step."""
        gradients = zip(self.variables, self._unpack(self._gradient), strict=True)
        return [variable for variable, part in gradients if not np.isfinite(part).all()]

    def finish(self) -> None:
        """Leave the variables at the average of their iterates, if the optimiser makes one."""
        if getattr(self.optimizer, "use_ema", False):
            self.optimizer.finalize_variable_values(self._optimized)

    def _places(self) -> _State:
        """The variables that hold the state between calls, with the previous values twice."""
        moments = tuple(self.optimizer.state) if isinstance(self.optimizer, Adam) else ()
        return _State(self._previous, self._previous, moments, self.batches.state, self._step)

    def _pack(self, values: Sequence[tf.Tensor]) -> tf.Tensor:
        return tf.concat([tf.reshape(value, [-1]) for value in values], axis=0)

    def _unpack(self, vector: tf.Tensor) -> list[tf.Tensor]:
        return [
            tf.reshape(part, variable.shape)
            for part, variable in zip(tf.split(vector, self._sizes), self.variables, strict=True)
        ]

    @functools.cached_property
    def _settings(self) -> Callable[[tf.Tensor], tf.Tensor]:
        """Settings of an :class:`Adam` in the next steps; zeros where there is another one."""
        if not isinstance(self.optimizer, Adam):
            return lambda num_steps: tf.zeros([num_steps, 4], tf.float64)
        if not callable(self.optimizer.learning_rate):
            return self.optimizer.settings
        return tf.function(self.optimizer.settings, autograph=False)

    @functools.cached_property
    def _compiled_run(self) -> Callable[..., tuple[_State, BoundTerms, tf.Tensor]]:
        """The function of :meth:`_run`, traced now unless one of such a model is kept."""
        if tf.config.functions_run_eagerly():
            return self._run
        key = self._key()
        with _lock:
            if key in _kept:
                _kept.move_to_end(key)
                return _kept[key]
        traced = self._traced()
        if key is not None and not any(
            tensor.dtype in (tf.resource, tf.variant) for tensor in traced.captured_inputs
        ):
            with _lock:
                _kept[key] = traced
                if len(_kept) > _MOST_KEPT:
                    _kept.popitem(last=False)
        return traced

    def _key(self) -> Hashable:
        """What the compiled function depends on besides arrays; None if that is not known."""
        structure = structure_of(self.model)
        if self._devices.strategy or structure is None or type(self.optimizer) is not Adam:
            return None
        if may_draw_globally(self.model.likelihood):
            return None  # Its generators would go on where the last run has left them.
        config = repr(gpflow.config.config())
        return structure, self.batches.key, self.num_importance_samples, self.jit_compile, config

    def _traced(self) -> Any:
        def like(variable: tf.Variable) -> tf.TensorSpec:
            return tf.TensorSpec(variable.shape, variable.dtype)

        scalar, vector = tf.TensorSpec([], tf.int64), tf.TensorSpec([None], tf.float64)
        rows, seed = tf.TensorSpec([None, 4], tf.float64), tf.TensorSpec([2], self.seed.dtype)
        traced = tf.function(self._run, autograph=False).get_concrete_function(
            tf.nest.map_structure(like, self._places()),
            [like(variable) for variable in self._fixed],
            self.batches.specs,
            _Inputs(vector, rows, seed, scalar),
        )
        reset_cache_bijectors(self.model)  # which hold what they have transformed
        return traced

    def _run(
        self, state: _State, fixed: list[tf.Tensor], arrays: tuple[Any, ...], inputs: _Inputs
    ) -> tuple[_State, BoundTerms, tf.Tensor]:
        differentiate = self._differentiate
        if self.jit_compile:
            # XLA compiles nothing in which replicas wait for each other.
            differentiate = tf.function(differentiate, jit_compile=True, autograph=False)
        num_steps = tf.shape(inputs.kl_weight)[0]
        dtype = state.values.dtype
        arrays_of_terms = [
            tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=shape)
            for shape in ([], [self.model.num_log_ratios])
        ]

        def body(
            index: tf.Tensor, state: _State, gradient: tf.Tensor, terms: list[tf.TensorArray]
        ) -> tuple[tf.Tensor, _State, tf.Tensor, list[tf.TensorArray]]:
            batch, place = self.batches.draw(arrays, state.batches)
            own = inputs._replace(
                kl_weight=inputs.kl_weight[index],
                settings=inputs.settings[index],
                seed=fold_in(inputs.seed, tf.cast(state.step, tf.int32)),
            )

            def of_share(batch: RegressionData, seed: Seed, num_data: tf.Tensor) -> _Outcome:
                share = own._replace(seed=seed, num_data=num_data)
                return differentiate(state.values, fixed, batch, share)

            outcome = self._devices.average(of_share, batch, own.seed, own.num_data)
            share = tf.cast(tf.shape(batch[0], tf.int64)[0] / own.num_data, dtype)
            state = state._replace(batches=place)
            state, was_taken = self._updated(state, outcome, own.settings, share)
            return (
                # An integer of 32 bits is on the host, beside a GPU, where the loop is decided on.
                index + was_taken + (1 - was_taken) * num_steps,
                state,
                outcome.gradient,
                [each.write(index, term) for each, term in zip(terms, outcome.terms, strict=True)],
            )

        _, state, gradient, terms = tf.while_loop(
            lambda index, *_: index < num_steps,
            body,
            (tf.constant(0), state, tf.zeros_like(state.values), arrays_of_terms),
            parallel_iterations=1,
        )
        return state, BoundTerms(*(each.stack() for each in terms)), gradient

    def _differentiate(
        self, values: tf.Tensor, fixed: list[tf.Tensor], batch: RegressionData, inputs: _Inputs
    ) -> _Outcome:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(values)
            arrays = [*self._unpack(values), *fixed]
            with holding(self.model, [*self.variables, *self._fixed], arrays, inputs.num_data):
                # Here first: TFP keeps what a bijector has made, be it in a branch or a loop.
                constrained = [tf.convert_to_tensor(each) for each in self.model.parameters]
                terms = self.model.elbo_terms(
                    batch, num_importance_samples=self.num_importance_samples, seed=inputs.seed
                )
                log_priors = [parameter.log_prior_density() for parameter in self._priors]
                concentrations = [each.concentration[None] for each in self.precisions]
            loss = -tf.add_n([terms.weighted_sum(inputs.kl_weight), *log_priors])
        del constrained
        gradient = tape.gradient(loss, values)
        if concentrations:
            others = tf.ones([sum(self._sizes) - len(concentrations)], values.dtype)
            gradient /= tf.concat([others, *concentrations], axis=0)
        return _Outcome(terms, loss, gradient)

    def _updated(
        self, state: _State, outcome: _Outcome, settings: tf.Tensor, share: tf.Tensor
    ) -> tuple[_State, tf.Tensor]:
        """Take a step only if all its numbers are finite, else the last one back.

        :param share: Of all data, which the batch is.
        :return: The state, and 1 if the step was taken, else 0.
        """

        def taken() -> tuple[_State, tf.Tensor]:
            size = sum(self._sizes) - len(self.precisions)
            values, moments = state.values[:size], state.optimizer
            if isinstance(self.optimizer, Adam):
                gradient = outcome.gradient[:size]
                change, moments = adam_step(AdamState(*moments), gradient, settings)
                values -= change
            else:
                values = self._apply(outcome.gradient)
            rates = state.values[size:] + tf.math.log1p(-share * outcome.gradient[size:])
            values = tf.concat([values, rates], axis=0)
            after = _State(values, state.values, tuple(moments), state.batches, state.step + 1)
            return after, tf.constant(1)

        finite = tf.reduce_all(tf.math.is_finite(outcome.gradient))
        finite = tf.logical_and(finite, tf.math.is_finite(outcome.loss))
        back = state._replace(values=state.previous)
        return tf.cond(finite, taken, lambda: (back, tf.constant(0)))

    def _apply(self, gradient: tf.Tensor) -> tf.Tensor:
        """Let an optimiser change the variables that it knows; return their values."""

        def on_replica() -> tf.Tensor:
            pairs = list(zip(self._unpack(gradient), self._optimized, strict=False))
            if isinstance(self.optimizer, NaturalGradientAdam):
                self.optimizer.step(pairs)
            else:  # Gradients of replicas are averages by now.
                self.optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)
            return self._pack(self._optimized)

        return self._devices.on_each(on_replica)
