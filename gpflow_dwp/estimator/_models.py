"""What estimators do with models: keep the old one, copy one, ask for a line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import tensorflow as tf
from gpflow.utilities import deepcopy

from gpflow_dwp.models import DeepWishartProcess
from gpflow_dwp.models.named_kernels import SUMS

LINE = "AdditiveMatern52"
"""The kernel that is taken where a line is wanted."""

_Method = TypeVar("_Method", bound=Callable[..., Any])


def whole_or_not(method: _Method) -> _Method:
    """Make an estimator what it was before, where a method of it fails or is interrupted."""

    @functools.wraps(method)
    def kept(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(self).copy()
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(_Method, kept)


def check_line(mean_function: str, kernel: Any, depth: Any, candidates: Any) -> None:
    """Refuse a trend by name that is none, or no part of the model that is asked for."""
    if mean_function != "linear":
        raise ValueError(
            f"mean_function must be GPflow's, 'linear' or None, got {mean_function!r}."
        )
    if kernel not in ("auto", *SUMS) or depth not in ("auto", 1) or candidates is not None:
        raise ValueError(
            f"kernel must be 'auto' or one of {[*SUMS]}, depth 'auto' or 1, and candidates None, "
            f"with mean_function='linear', got {kernel!r}, {depth!r} and {candidates!r:.80}."
        )


def copy_of(model: DeepWishartProcess) -> DeepWishartProcess:
    """A copy that can be given other rows, as TensorFlow's own copies of variables cannot."""
    copies = {
        id(variable): tf.Variable(variable, trainable=variable.trainable, shape=variable.shape)
        for variable in model.variables
        if not variable.shape.is_fully_defined()
    }
    return deepcopy(model, copies)
