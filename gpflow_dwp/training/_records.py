"""What steps of training record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpflow_dwp.objectives import BoundTerms

__all__ = ["StepRecords", "joined"]


class StepRecords(NamedTuple):
    """What each step of one call recorded, up to and including a failed one.

    :param terms: The bound's terms, [T] and [T, L].
    :param failed: Whether the last step's bound or gradient was not finite; if so, the step was
        not taken, and the variables are those of the step before, whose bound was finite.
    :param finite_gradients: For each variable, whether the last step's gradient was finite.
    """

    terms: BoundTerms
    failed: bool
    finite_gradients: Sequence[bool]


def joined(records: Sequence[StepRecords]) -> BoundTerms:
    """Return the terms of all steps of several calls."""
    return BoundTerms(
        np.concatenate([record.terms.data for record in records]),
        np.concatenate([record.terms.log_ratios for record in records]),
    )
