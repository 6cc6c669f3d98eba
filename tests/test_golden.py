"""A seed gives the numbers that it always gave: see :mod:`golden`, which records them."""

from __future__ import annotations

import golden
import pytest

RELATIVE = 1e-10
"""What another order of sums, or another way to the same operations, may change."""

SINGLE = 1e-4
"""The same where numbers are float32."""

TRAINED = 1e-6
"""The same after steps of an optimiser, of which each makes a difference larger."""

STORED = golden.read()


def tolerance(group: str, name: str) -> float:
    """How far a number may be from what was recorded, relative to the largest of its entry."""
    if "float32" in name:
        return SINGLE
    return TRAINED if group in ("estimators", "fit", "selection") else RELATIVE


def test_every_group_has_been_recorded() -> None:
    assert list(STORED) == list(golden.GROUPS)


@pytest.mark.parametrize("group", golden.GROUPS)
def test_numbers_are_those_recorded(group: str) -> None:
    """Catches a refactoring that changes a result: a draw, a bound, a gradient or a prediction."""
    found = golden.differences(golden.GROUPS[group](), STORED[group])

    lines = [
        f"{difference:.1e} > {tolerance(group, name):.0e}  {name}"
        for name, difference in found.items()
        if not difference <= tolerance(group, name)
    ]
    message = f"{len(lines)} of {len(found)} entries of {group} differ:\n" + "\n".join(lines)
    assert not lines, message
