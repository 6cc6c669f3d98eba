"""All that training touches of TensorFlow's and TensorFlow Probability's private parts.

Where a version has one no more, training goes on without what it was for: less is forgotten, or a
function is compiled anew for every run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp

__all__ = [
    "forget_gradient",
    "forget_transformed",
    "function_of",
    "iterator_resources",
    "let_go_of_graphs",
]

_where_it_is = contextlib.suppress(AttributeError, ImportError)


def forget_gradient(name: str) -> None:
    """Take the gradient of one call of a ``tf.custom_gradient`` from the table that holds all."""
    with _where_it_is:
        from tensorflow.python.framework.ops import gradient_registry

        gradient_registry._registry.pop(name, None)


def forget_transformed() -> None:
    """Take symbolic tensors from the table of what bijectors have transformed."""
    with _where_it_is:
        storage: Mapping[Any, Any] = tfp.bijectors.Bijector._cache.storage
        for reference in list(storage):
            if any(tf.is_symbolic_tensor(value) for value in tf.nest.flatten(reference())):
                reference.cancel()
                storage.pop(reference, None)  # type: ignore[attr-defined]


def iterator_resources(iterator: Any) -> list[Any]:
    """Return the handle by which a compiled function knows the iterator of a dataset, if any."""
    with _where_it_is:
        return [iterator._iterator_resource]
    return []


def function_of(traced: Any) -> Any | None:
    """Return the definition of a compiled function, which takes all that it uses as arguments.

    None where TensorFlow has none that can be called so.
    """
    atomic = getattr(traced, "_inference_function", None)
    return atomic if hasattr(atomic, "call_preflattened") else None


def let_go_of_graphs(atomic: Any) -> None:
    """Forget the Python graphs of a definition, which are made again from it if anything asks."""
    waiting = [atomic]
    while waiting:
        function = waiting.pop()
        with _where_it_is:
            function._cached_graph = None
            waiting.extend(function.children)
