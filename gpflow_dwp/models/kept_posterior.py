"""Draws that serve call after call, until their model changes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from gpflow_dwp.models.mixture_posterior import MixturePosterior
from gpflow_dwp.models.variational import VariationalModel

__all__ = ["kept_posterior"]


class _Kept(NamedTuple):
    parts: tuple[Any, ...]
    is_current: Callable[[], tf.Tensor]
    posterior: MixturePosterior


_lock = threading.Lock()
_kept: weakref.WeakKeyDictionary[VariationalModel, _Kept] = weakref.WeakKeyDictionary()


def kept_posterior(model: VariationalModel, seed: int) -> MixturePosterior:
    """Return ``model.posterior(seed=seed)``, the same object until the model changes.

    Its predictions are compiled, so that one of a single row takes a millisecond, and any number of
    threads may ask for them. Gradients by parameters of the model are None.
    """
    parts = (seed, model.num_prediction_samples, model.likelihood, *model.layers)
    for layer in model.layers:
        parts += layer.kernel, getattr(layer, "kernel_draws", None)
    with _lock:
        kept = _kept.get(model)
        is_of_parts = kept is not None and all(
            one is other or (isinstance(one, int) and one == other)
            for one, other in zip(kept.parts, parts, strict=True)
        )
        if kept is None or not (is_of_parts and kept.is_current()):
            posterior = model.posterior(seed=seed)
            posterior.is_kept = True
            kept = _kept[model] = _Kept(parts, _comparison(model.variables), posterior)
        return kept.posterior


def _comparison(variables: tuple[tf.Variable, ...]) -> Callable[[], tf.Tensor]:
    """What says whether variables have the values that they have now, in one call."""
    values = [tf.convert_to_tensor(variable) for variable in variables]

    def equal() -> tf.Tensor:
        same = [
            # The rows of a regression may be of another number.
            tf.reduce_all(tf.raw_ops.Equal(x=variable, y=value, incompatible_shape_error=False))
            for variable, value in zip(variables, values, strict=True)
        ]
        return tf.reduce_all(tf.stack(same))

    return tf.function(equal, autograph=False).get_concrete_function()
