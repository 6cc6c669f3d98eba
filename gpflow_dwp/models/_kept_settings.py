"""Whether a model that was built again has the settings of the first: what is no parameter."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.quadrature import GaussianQuadrature

from gpflow_dwp.exceptions import SavedModelError

__all__ = ["check_settings"]

_PLAIN = bool | int | float | str | None | np.generic
# tf.Module's own.
_NAMES = ("_name", "_scope_name", "_name_scope")
_PREFIX = "_self_"
# They have caches, and what they are made of is compared with the parameters that have them.
_OF_TFP = gpflow.Parameter | tfp.bijectors.Bijector | tfp.distributions.Distribution


def check_settings(
    original: Any, rebuilt: Any, path: str = "", seen: set[int] | None = None
) -> None:
    """Refuse a model of which a part would come back with another setting.

    Settings are numbers, text and None, alone or in lists, that are attributes of modules or of
    their quadratures. What a new model lacks, such as a note that a user made, is none.

    :param original: The model, or a part of it.
    :param rebuilt: The same part of a model that was built from its description.
    :param path: Where the part is in the model.
    :param seen: Identities of the parts that were compared before.
    :raises SavedModelError: If a setting differs; the message has its path and both values.
    """
    seen = set() if seen is None else seen
    if isinstance(original, _PLAIN) and isinstance(rebuilt, _PLAIN):
        both_nan = original != original and rebuilt != rebuilt
        if original != rebuilt and not both_nan:
            raise _refusal(path, repr(original), repr(rebuilt))
        return
    if isinstance(original, _OF_TFP) or id(original) in seen:
        return
    seen.add(id(original))
    if isinstance(original, list | tuple) and isinstance(rebuilt, list | tuple):
        if len(original) != len(rebuilt):
            raise _refusal(path, f"of length {len(original)}", f"one of length {len(rebuilt)}")
        for index, parts in enumerate(zip(original, rebuilt, strict=True)):
            check_settings(*parts, f"{path}[{index}]", seen)
    elif isinstance(original, tf.Module | GaussianQuadrature):
        if type(original) is not type(rebuilt):
            raise _refusal(path, type(original).__name__, type(rebuilt).__name__)
        for name, value in vars(original).items():
            if name not in _NAMES and not name.startswith(_PREFIX) and hasattr(rebuilt, name):
                check_settings(value, getattr(rebuilt, name), f"{path}.{name}", seen)


def _refusal(path: str, value: str, other: str) -> SavedModelError:
    return SavedModelError(
        f"{path} is {value}, and a new model would have {other}; it cannot be saved."
    )
