"""Which part of a model made its bound infinite, or no number at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpflow_dwp.objectives import BoundTerms

if TYPE_CHECKING:
    from gpflow_dwp.models.variational import VariationalModel

__all__ = ["describe_non_finite"]


def describe_non_finite(model: VariationalModel, terms: BoundTerms) -> str | None:
    """Name the lowest part of a model whose term of the bound is not finite.

    :param model: The model.
    :param terms: The terms of one bound, not symbolic.
    :return: The beginning of a sentence that ends in "not finite"; None if every term is finite.
    """
    bad_layers = np.flatnonzero(~np.isfinite(terms.log_ratios))
    if bad_layers.size:
        parts = {f"layers[{index}]": layer for index, layer in enumerate(model.layers)}
        parts["the likelihood"] = model.likelihood
        name, part = list(parts.items())[int(bad_layers[0])]
        return f"{name} ({type(part).__name__}) has a log ratio that is"
    if not np.isfinite(terms.data):
        return f"the likelihood ({type(model.likelihood).__name__}) has an expectation that is"
    return None
