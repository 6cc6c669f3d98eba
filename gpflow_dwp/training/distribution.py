"""Training on several devices: all that training knows of ``tf.distribute``."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

import tensorflow as tf
from gpflow.base import RegressionData

from gpflow_dwp.base import Seed
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.random import fold_in
from gpflow_dwp.training._structure import names_of
from gpflow_dwp.training.callbacks import Callback
from gpflow_dwp.validation import check_choice

__all__ = ["Replicas", "Split", "Workers", "aggregated", "find_replicas"]

Split = Literal["rows", "samples"]
"""What :func:`fit` divides among replicas."""

Result = TypeVar("Result")

_STRATEGIES = (
    tf.distribute.MirroredStrategy,
    tf.distribute.MultiWorkerMirroredStrategy,
    tf.distribute.OneDeviceStrategy,
)


class Workers:
    """The processes of a run: what only the first one does, and what all of them agree on.

    :param strategy: The strategy of the run; None, or one of a single process, for this one alone.
    """

    def __init__(self, strategy: tf.distribute.Strategy | None = None) -> None:
        self._mean_over_all: Callable[[tf.Tensor], tf.Tensor] | None = None
        self.is_first = True
        if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return
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
            return strategy.experimental_local_results(strategy.run(on_replica, args=(value,)))[0]

        self._mean_over_all = mean_over_all

    @property
    def are_several(self) -> bool:
        """Whether there are others than this one."""
        return self._mean_over_all is not None

    def mean(self, value: float) -> float:
        """Return the mean of all workers' numbers; none goes on before all are here."""
        if self._mean_over_all is None:
            return value
        return float(self._mean_over_all(tf.constant(value, tf.float64)))

    def any(self, flag: bool) -> bool:
        """Say whether any worker's flag is set."""
        return self.mean(float(flag)) > 0.0

    def own(self, callbacks: Sequence[Callback]) -> list[Callback]:
        """Return callbacks, of which those for the first worker only do nothing elsewhere."""
        return [
            callback
            if self.is_first or not getattr(callback, "only_in_first_worker", False)
            else lambda progress: None
            for callback in callbacks
        ]

    def check_same(self, value: object, requirement: str) -> None:
        """Refuse plain values that are not the same in all workers.

        :param requirement: What is asked for, in words.
        :raises ValueError: In all workers, if they differ.
        """
        if self._mean_over_all is None:
            return
        digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
        number = int.from_bytes(digest[:4], "big")
        mean = self.mean(number)
        if self.any(abs(mean - number) > 1e-3):  # a mean of equal numbers may be rounded
            raise ValueError(f"{requirement}, got others in some than in this one: {value}.")


class Replicas:
    """Copies of a model, one on each device of a strategy, that take every step together.

    Each computes the gradient of its share of the bound. The mean over all replicas is the
    gradient of the whole, with which each changes its own copy of the variables in the same way.

    :param strategy: A strategy whose replicas have all variables.
    :param split: Whether a share is some rows of every batch, or some draws for all of its rows.
    :param by_place: Whether rows' random numbers depend on their place in a batch: then those of
        replicas must differ.
    """

    def __init__(self, strategy: tf.distribute.Strategy, split: Split, *, by_place: bool) -> None:
        self._strategy = strategy
        self.workers = Workers(strategy)
        self._splits_rows = split == "rows"
        self._own_draws = strategy.num_replicas_in_sync > 1 and (split == "samples" or by_place)

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """In which variables get a copy on every replica."""
        return self._strategy.scope()

    def reduce(
        self,
        differentiate: Callable[[RegressionData, Seed, tf.Tensor], Result],
        batch: RegressionData,
        seed: Seed,
        num_data: tf.Tensor,
    ) -> Result:
        """Give every replica its share of a step, and return the average of what comes of it.

        :param differentiate: From rows, seed and the number of data that the rows stand for to
            tensors.
        """

        def on_replica(batch: RegressionData, seed: Seed, num_data: tf.Tensor) -> Result:
            context = tf.distribute.get_replica_context()
            replica = tf.cast(context.replica_id_in_sync_group, tf.int64)
            if self._splits_rows:
                batch, num_data = _share(batch, num_data, replica, context.num_replicas_in_sync)
            if self._own_draws:
                seed = fold_in(seed, tf.cast(replica, seed.dtype))
            result = differentiate(batch, seed, num_data)
            mean = context.all_reduce(tf.distribute.ReduceOp.MEAN, tf.nest.flatten(result))
            return tf.nest.pack_sequence_as(result, mean)

        return self._strategy.run(on_replica, args=(batch, seed, num_data))

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function on each replica, and return what it returns on each."""
        return self._strategy.run(function, args=arguments)

    def first(self, values: Result) -> Result:
        """Return the values of this process's first replica."""
        return tf.nest.map_structure(
            lambda value: self._strategy.experimental_local_results(value)[0], values
        )

    def check_optimizer(self, optimizer: Any) -> None:
        """Refuse an optimiser with variables of which replicas have no copy."""
        if _strangers(self._strategy, _variables(optimizer)):
            raise ValueError(
                "optimizer must be made within the scope of the strategy, which "
                f"{type(optimizer).__name__} was not."
            )

    def check_model(self, model: VariationalModel) -> None:
        """Refuse a model with variables of which replicas have no copy, or some of each row."""
        strangers = names_of(model, _strangers(self._strategy, model.variables))
        if strangers:
            raise ValueError(
                "model must be built within the scope of the strategy, which was not so for "
                f"{', '.join(strangers[:3])}{', ...' * (len(strangers) > 3)}."
            )
        if self._splits_rows and self._strategy.num_replicas_in_sync > 1:
            for module in model.submodules:
                if getattr(module, "is_of_rows", False):
                    raise ValueError(
                        "split must be 'samples' for this model, whose "
                        f"{type(module).__name__} has parameters of each row, got 'rows'."
                    )


def find_replicas(
    strategy: tf.distribute.Strategy | None, split: Split, model: VariationalModel
) -> Replicas | None:
    """Return the replicas that train a model; None without a strategy.

    :param strategy: None for that of the scope in which this is called, if there is one.
    :raises ValueError: If the strategy is of another kind than these, or not the model's.
    """
    check_choice(("rows", "samples"), split=split)
    if strategy is None and tf.distribute.has_strategy():
        strategy = tf.distribute.get_strategy()
    if strategy is None:
        if any(isinstance(each, tf.distribute.DistributedValues) for each in model.variables):
            raise ValueError("strategy must be that in whose scope the model was built, got None.")
        if split != "rows":
            raise ValueError(f"split must be 'rows' without a strategy, got {split!r}.")
        return None
    if not isinstance(strategy, _STRATEGIES):
        raise ValueError(
            "strategy must be a MirroredStrategy, MultiWorkerMirroredStrategy or "
            f"OneDeviceStrategy, got {strategy!r}."
        )
    replicas = Replicas(strategy, split, by_place=model.draws_by_place)
    replicas.check_model(model)
    return replicas


def aggregated(
    optimizer: tf.Module, pairs: Iterable[tuple[tf.Tensor, tf.Variable]]
) -> list[tuple[tf.Tensor, tf.Variable]]:
    """Sum gradients over the replicas of the strategy that calls an optimiser, as Keras' do.

    :raises ValueError: If there are several replicas, and this is called outside them, or the
        variables of the optimiser or these were made outside their strategy's scope.
    """
    pairs, strategy = list(pairs), tf.distribute.get_strategy()
    if strategy.num_replicas_in_sync == 1:
        return pairs
    context, name = tf.distribute.get_replica_context(), type(optimizer).__name__
    if context is None:
        raise ValueError(f"{name} must take its steps within strategy.run, got a call outside.")
    gradients, variables = zip(*pairs, strict=True)
    if _strangers(strategy, (*_variables(optimizer), *variables)):
        raise ValueError(
            f"{name}, and what it changes, must be made within the scope of the "
            f"{type(strategy).__name__} that runs it, got variables from elsewhere."
        )
    summed = context.all_reduce(tf.distribute.ReduceOp.SUM, list(gradients))
    return list(zip(summed, variables, strict=True))


def _variables(optimizer: Any) -> list[tf.Variable]:
    """All of an optimiser's, also of a Keras one within another module."""
    found = tf.train.TrackableView(optimizer).descendants()
    return [each for each in found if isinstance(each, tf.Variable)]


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
