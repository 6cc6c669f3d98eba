"""Entry points that users compile with a ``tf.function`` of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import tensorflow as tf

__all__ = ["without_autograph"]

Function = TypeVar("Function", bound=Callable[..., Any])


def without_autograph(function: Function) -> Function:
    """Keep AutoGraph from rewriting ``function`` and all that it calls.

    ``tf.function`` rewrites the source of whatever it traces unless it is told not to: several
    times the time of tracing itself, and for nothing, as no Python statement here branches or
    loops on tensors. GPflow's ``training_loss_closure`` and its SciPy optimiser do not tell it.
    """
    return cast(Function, tf.autograph.experimental.do_not_convert(function))
