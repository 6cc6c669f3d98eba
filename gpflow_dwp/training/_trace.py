"""Compiled functions that the process forgets once nobody holds them any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from gpflow_dwp.training._internals import forget_gradient, forget_transformed

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
                forget_gradient(name)
    forget_transformed()
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
