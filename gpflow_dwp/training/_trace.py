"""Compiled functions that the process forgets once nobody holds them any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp
from tensorflow.python.framework.ops import gradient_registry

__all__ = ["trace"]


def trace(
    function: Callable[..., Any], *signature: tf.TensorSpec, inner: str | None = None
) -> Callable[..., Any]:
    """Compile a function whose gradients are all taken within it.

    Two tables of the process would hold on to its graph, some 10 to 30 MB: TensorFlow's of the
    gradient of each call of a ``tf.custom_gradient``, and that of what bijectors have transformed.
    Of a function that has been traced, no one asks either again. Compiled functions that it calls
    may be called by others, too, and keep their gradients.

    :param function: What to compile.
    :param signature: Of its arguments, which are given by position.
    :param inner: The name of a function that it calls compiled and that nothing else calls.
    :return: The function itself where TensorFlow is told to compile none
        (``tf.config.run_functions_eagerly``).
    """
    if tf.config.functions_run_eagerly():
        return function
    traced = tf.function(function, autograph=False).get_concrete_function(*signature)
    for node in _own_nodes(traced.graph.as_graph_def(), inner):
        if "_gradient_op_type" in node.attr:
            name = node.attr["_gradient_op_type"].s.decode()
            if name.startswith("CustomGradient-"):
                gradient_registry._registry.pop(name, None)
    _forget_transformed()
    return traced


def _own_nodes(graph: Any, inner: str | None) -> Iterator[Any]:
    """The nodes of a graph, with those of its loops and branches and of the inner function."""
    bodies = {body.signature.name: body.node_def for body in graph.library.function}
    waiting = [graph.node]
    while waiting:
        for node in waiting.pop():
            yield node
            is_call = node.op in ("PartitionedCall", "StatefulPartitionedCall")
            for attribute in node.attr.values():
                for called in (attribute.func, *attribute.list.func):
                    if not is_call or (inner is not None and inner in called.name):
                        waiting.append(bodies.pop(called.name, []))


def _forget_transformed() -> None:
    storage = tfp.bijectors.Bijector._cache.storage
    for reference in list(storage):
        if any(tf.is_symbolic_tensor(value) for value in tf.nest.flatten(reference())):
            reference.cancel()
            storage.pop(reference, None)
