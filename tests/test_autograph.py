"""Entry points that AutoGraph must leave alone."""

from __future__ import annotations

import pytest
import tensorflow as tf

from gpflow_dwp.autograph import without_autograph


def absolute(x: tf.Tensor) -> tf.Tensor:
    """A Python branch on a tensor, which only AutoGraph can trace."""
    if x < 0:
        return -x
    return x


def test_what_is_called_in_a_compiled_function_is_not_rewritten() -> None:
    x = tf.constant(-1.0)
    assert tf.function(lambda: absolute(x))() == 1.0

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(lambda: without_autograph(absolute)(x))()


def test_eager_calls_and_names_stay() -> None:
    kept = without_autograph(absolute)

    assert kept(tf.constant(-2.0)) == 2.0
    assert kept.__name__ == "absolute"
    assert kept.__doc__ == absolute.__doc__
