"""Compiled functions that the process forgets once nobody holds them any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp
from tensorflow.python.framework.ops import gradient_registry

__all__ = ["trace"]


def trace(function: Callable[..., Any], *signature: tf.TensorSpec) -> Callable[..., Any]:
    """Compile a function whose gradients are all taken within it.

    Two tables of the process would hold on to its graph, some 10 to 30 MB: TensorFlow's of the
    gradient of each call of a ``tf.custom_gradient``, and that of what bijectors have transformed.
    Of a function that has been traced, no one asks either again.

    :param function: What to compile.
    :param signature: Of its arguments, which are given by position.
    """
    traced = tf.function(function, autograph=False).get_concrete_function(*signature)
    _forget_gradients(traced.graph.as_graph_def())
    _forget_transformed()
    return traced


def _forget_gradients(graph: Any) -> None:
    for nodes in (graph.node, *(body.node_def for body in graph.library.function)):
        for node in nodes:
            if "_gradient_op_type" in node.attr:
                name = node.attr["_gradient_op_type"].s.decode()
                if name.startswith("CustomGradient-"):
                    gradient_registry._registry.pop(name, None)


def _forget_transformed() -> None:
    storage = tfp.bijectors.Bijector._cache.storage
    for reference in list(storage):
        if any(tf.is_symbolic_tensor(value) for value in tf.nest.flatten(reference())):
            reference.cancel()
            storage.pop(reference, None)
