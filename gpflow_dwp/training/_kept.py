"""Compiled functions that are kept, and called again with the variables of another model."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

import tensorflow as tf

from gpflow_dwp.training._internals import function_of, let_go_of_graphs

__all__ = ["KeptFunction", "find_kept", "forget_kept", "keep"]

_MOST = 8

# What they do depends on a state of their own, or on Python; so it does of all named Random...
_NOT_REPEATABLE = (
    "EagerPyFunc",
    "Multinomial",
    "ParameterizedTruncatedNormal",
    "PyFunc",
    "PyFuncStateless",
    "TruncatedNormal",
)

_kept: OrderedDict[Hashable, KeptFunction] = OrderedDict()
_lock = threading.Lock()


class KeptFunction:
    """A compiled function whose variables are arguments.

    It holds TensorFlow's definition: no variable, no data, and no graph of Python objects.

    :param captures: What the definition is given after its arguments: places in the list of
        resources, or constants.
    """

    def __init__(self, atomic: Any, captures: Sequence[int | tf.Tensor]) -> None:
        self._atomic = atomic
        self._captures = captures

    def __call__(self, arguments: Sequence[tf.Tensor], resources: Sequence[tf.Tensor]) -> Any:
        """Call it, with resources of the kinds, in the order, of those that it was made with."""
        inputs = [
            resources[capture] if isinstance(capture, int) else capture
            for capture in self._captures
        ]
        return self._atomic.call_preflattened([*arguments, *inputs])


def keep(key: Hashable, traced: Any, resources: Sequence[tf.Tensor]) -> KeptFunction | None:
    """Keep a function, if it can be called with other resources than its own.

    :param key: What it depends on, apart from its inputs.
    :param traced: What TensorFlow compiled; it is called no more. Nothing takes its gradients.
    :param resources: Handles of variables, and iterators.
    :return: None if it uses others than these, has a state of its own, or runs Python; or where
        TensorFlow cannot call it so.
    """
    places = {id(resource): place for place, resource in enumerate(resources)}
    captures = [places.get(id(tensor), tensor) for tensor in traced.captured_inputs]
    if not _is_repeatable(traced.graph.as_graph_def()) or any(
        tf.is_tensor(capture) and capture.dtype in (tf.resource, tf.variant) for capture in captures
    ):
        return None
    atomic = function_of(traced)
    if atomic is None:
        return None
    let_go_of_graphs(atomic)
    function = KeptFunction(atomic, captures)
    with _lock:
        _kept[key] = function
        if len(_kept) > _MOST:
            _kept.popitem(last=False)
    return function


def find_kept(key: Hashable) -> KeptFunction | None:
    """Return the function of a key, if it is among the last ones that were used."""
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
        return _kept.get(key)


def forget_kept() -> None:
    with _lock:
        _kept.clear()


def _is_repeatable(graph: Any) -> bool:
    bodies = [graph.node, *(function.node_def for function in graph.library.function)]
    kinds = {node.op for nodes in bodies for node in nodes}
    return not any(
        kind in _NOT_REPEATABLE or (kind.startswith("Random") and kind != "RandomGammaGrad")
        for kind in kinds
    )
