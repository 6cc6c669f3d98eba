"""A seed gives the numbers that it always gave: see :mod:`golden`, which records them.

Two recordings are equal to the last bit. The tolerances are for code that is rearranged: they are
some times what comes of moving every variable by one unit in its last place.
"""

from __future__ import annotations

import golden
import pytest

DOUBLE = 1e-10
SINGLE = 3e-3
TRAINED = 1e-7
"""After steps of an optimiser, of which each makes a difference larger."""

SELECTED = 1e-3
"""After L-BFGS that has not converged, whose number of steps rounding can change."""

STORED = golden.read()


def tolerance(group: str, name: str) -> float:
    """How far a number may be from what was recorded, relative to the largest of its entry."""
    if "float32" in name:
        return SINGLE
    if name.startswith(("candidates", "regressor")):
        return SELECTED
    return TRAINED if group in ("estimators", "fit", "selection") else DOUBLE


def test_every_group_has_been_recorded() -> None:
    assert list(STORED) == list(golden.GROUPS)


RARER = "likelihoods", "outputs", "wishart, options"
"""Variants of what other groups record, each with tests of its own."""


@pytest.mark.parametrize(
    "group",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in RARER)) for name in golden.GROUPS],
)
def test_numbers_are_those_recorded(group: str, request: pytest.FixtureRequest) -> None:
    """Catches a refactoring that changes a result: a draw, a bound, a gradient or a prediction."""
    if group == "estimators":  # which are trained in a few steps
        request.getfixturevalue("eager")
    found = golden.differences(golden.digest(golden.GROUPS[group]()), STORED[group])
    lines = [
        f"{difference:.1e} > {tolerance(group, name):.0e}  {name}"
        for name, difference in found.items()
        if not difference <= tolerance(group, name)
    ]
    message = f"{len(lines)} of {len(found)} entries of {group} differ:\n" + "\n".join(lines)
    assert not lines, message
