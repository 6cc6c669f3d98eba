"""Where steps are taken: all that training knows of devices and of ``tf.distribute``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import tensorflow as tf
from gpflow.base import RegressionData

from gpflow_dwp.base import Seed
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.random import fold_in
from gpflow_dwp.training._structure import names_of

__all__ = ["Devices", "beside"]

Result = TypeVar("Result")

_STRATEGIES = (
    tf.distribute.MirroredStrategy,
    tf.distribute.MultiWorkerMirroredStrategy,
    tf.distribute.OneDeviceStrategy,
)


def beside(variables: Sequence[tf.Variable]) -> contextlib.AbstractContextManager[Any]:
    """Place on the device of ``variables`` whatever is made within; nowhere if they have several.

    XLA takes no variable from another device than the one that it compiles for.
    """
    devices = {variable.device for variable in variables}
    return tf.device(devices.pop()) if len(devices) == 1 else contextlib.nullcontext()


class Devices:
    """One device, or those of a strategy, each with a copy of the model, that step together.

    Each replica computes the gradient of its share of the bound, some rows of every batch. The mean
    over all is the gradient of the whole, with which each changes its own copy of the variables in
    the same way. Several processes, of a ``MultiWorkerMirroredStrategy``, make the same calls.

    :param model: The model.
    :param strategy: None for that of the scope in which this is called, if there is one.
    :raises ValueError: If the strategy is of another kind than these, or not the model's.
    :ivar strategy: The strategy; None for the one device where the model is.
    :ivar is_first: Whether this process is the first of those that train together, or alone.
    """

    def __init__(self, model: VariationalModel, strategy: tf.distribute.Strategy | None) -> None:
        if strategy is None and tf.distribute.has_strategy():
            strategy = tf.distribute.get_strategy()
        self.strategy, self.is_first = strategy, True
        self._variables = model.trainable_variables
        self._mean_over_all: Callable[[tf.Tensor], tf.Tensor] | None = None
        if strategy is None:
            if any(isinstance(each, tf.distribute.DistributedValues) for each in model.variables):
                raise ValueError(
                    "strategy must be that in whose scope the model was built, got None."
                )
            return
        if not isinstance(strategy, _STRATEGIES):
            raise ValueError(
                "strategy must be a MirroredStrategy, MultiWorkerMirroredStrategy or "
                f"OneDeviceStrategy, got {strategy!r}."
            )
        # Where each row has random numbers of its own, replicas must have others.
        self._own_draws = strategy.num_replicas_in_sync > 1 and model.draws_per_row
        strangers = names_of(model, _strangers(strategy, model.variables))
        if strangers:
            raise ValueError(
                "model must be built within the scope of the strategy, which was not so for "
                f"{', '.join(strangers[:3])}{', ...' * (len(strangers) > 3)}."
            )
        if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            self._join_workers(strategy)

    def _join_workers(self, strategy: tf.distribute.MultiWorkerMirroredStrategy) -> None:
        resolver = strategy.cluster_resolver
        tasks = resolver.cluster_spec().as_dict()
        if sum(map(len, tasks.values())) < 2:
            return
        first = "chief" if "chief" in tasks else "worker"
        self.is_first = (resolver.task_type, resolver.task_id) == (first, 0)

        def on_replica(value: tf.Tensor) -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            value = tf.identity(value)  # on the replica's device
            return context.all_reduce(tf.distribute.ReduceOp.MEAN, value)

        @tf.function(autograph=False)
        def mean_over_all(value: tf.Tensor) -> tf.Tensor:
            return self.first(strategy.run(on_replica, args=(value,)))

        self._mean_over_all = mean_over_all

    def mean(self, value: float) -> float:
        """Return the mean of all processes' numbers; none goes on before all are here."""
        if self._mean_over_all is None:
            return value
        return float(self._mean_over_all(tf.constant(value, tf.float64)))

    def any(self, flag: bool) -> bool:
        """Say whether any process's flag is set."""
        return self.mean(float(flag)) > 0.0

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """In which variables are made where the model's are."""
        return beside(self._variables) if self.strategy is None else self.strategy.scope()

    def average(
        self,
        function: Callable[[RegressionData, Seed, tf.Tensor], Result],
        batch: RegressionData,
        seed: Seed,
        num_data: tf.Tensor,
    ) -> Result:
        """Give every replica its share of a batch, and return the average of what comes of it.

        :param function: From rows, seed and the number of data that the rows stand for to tensors.
        """
        if self.strategy is None:
            return function(batch, seed, num_data)

        def on_replica(batch: RegressionData, seed: Seed, num_data: tf.Tensor) -> Result:
            context = tf.distribute.get_replica_context()
            replica = tf.cast(context.replica_id_in_sync_group, tf.int64)
            batch, num_data = _share(batch, num_data, replica, context.num_replicas_in_sync)
            if self._own_draws:
                seed = fold_in(seed, tf.cast(replica, seed.dtype))
            result = function(batch, seed, num_data)
            mean = context.all_reduce(tf.distribute.ReduceOp.MEAN, tf.nest.flatten(result))
            return tf.nest.pack_sequence_as(result, mean)

        return self.first(self.strategy.run(on_replica, args=(batch, seed, num_data)))

    def on_each(self, function: Callable[[], Result]) -> Result:
        """Call a function on each replica, and return what the first one's call returns."""
        return function() if self.strategy is None else self.first(self.strategy.run(function))

    def first(self, values: Result) -> Result:
        """Return the values of this process's first replica."""
        strategy: Any = self.strategy
        return tf.nest.map_structure(
            lambda value: strategy.experimental_local_results(value)[0], values
        )

    def check_optimizer(self, optimizer: tf.Module) -> None:
        """Refuse an optimiser with variables of which replicas have no copy."""
        if self.strategy is None:
            return
        found = tf.train.TrackableView(optimizer).descendants()
        if _strangers(self.strategy, [each for each in found if isinstance(each, tf.Variable)]):
            raise ValueError(
                "optimizer must be made within the scope of the strategy, which "
                f"{type(optimizer).__name__} was not."
            )


def _strangers(
    strategy: tf.distribute.Strategy, variables: Iterable[tf.Variable]
) -> list[tf.Variable]:
    """The variables of which the strategy's replicas have no copies."""
    is_own = strategy.extended.variable_created_in_scope
    return [variable for variable in variables if not is_own(variable)]


def _share(
    batch: RegressionData, num_data: tf.Tensor, replica: tf.Tensor, num_replicas: int
) -> tuple[RegressionData, tf.Tensor]:
    """A replica's rows, in one piece, and the number of data that they stand for.

    A bound is linear in that number: the mean over replicas is that of all rows, whatever their
    shares. One that gets no row, in a batch of few, takes one that stands for none.
    """
    num_rows = tf.shape(batch[0], tf.int64)[0]
    start, end = replica * num_rows // num_replicas, (replica + 1) * num_rows // num_replicas
    share = tf.cast((end - start) * num_replicas, tf.float64) / tf.cast(num_rows, tf.float64)
    rows = tuple(part[start : tf.maximum(end, start + 1)] for part in batch)
    return rows, share * tf.cast(num_data, tf.float64)
