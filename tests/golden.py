"""Numbers that a seed fixes, of everything that users build: bounds, gradients, predictions, fits.

``python tests/golden.py`` records them in ``golden.json``, and says what has changed since they
were recorded last; with names of groups, it records these alone. ``test_golden.py`` holds the
package to them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from golden_models import MODELS
from golden_parts import PARTS

Numbers = dict[str, np.ndarray]

GROUPS = {**MODELS, **PARTS}
"""What computes the numbers of each group."""

STORED = Path(__file__).with_name("golden.json")
SMALLEST = 1e-3
"""What is smaller is compared as if it were this: it is a difference of numbers of order 1."""

_MOST_NUMBERS = 8


def digest(numbers: dict[str, Any]) -> Numbers:
    """Arrays by name and shape: of few numbers as they are; of more, a norm and two projections."""
    digested: Numbers = {}
    for name, value in numbers.items():
        array = np.asarray(value)
        flat = array.astype(np.float64).ravel()
        if not np.all(np.isfinite(flat)):
            raise FloatingPointError(f"{name} is not finite")
        if flat.size > _MOST_NUMBERS:
            directions = np.random.default_rng(flat.size).normal(size=(2, flat.size))
            flat = np.concatenate([[np.linalg.norm(flat)], directions @ flat])
        digested[f"{name} {list(array.shape)}"] = flat
    return digested


def read() -> dict[str, dict[str, np.ndarray]]:
    """What has been recorded, group by group."""
    groups = json.loads(STORED.read_text(encoding="utf-8"))
    return {
        group: {name: np.asarray(value) for name, value in numbers.items()}
        for group, numbers in groups.items()
    }


def largest_difference(value: np.ndarray, stored: np.ndarray) -> float:
    """Relative to the largest of the stored numbers; infinity where shapes differ."""
    if value.shape != stored.shape:
        return np.inf
    difference = float(np.max(np.abs(value - stored), initial=0.0))
    return difference / max(float(np.max(np.abs(stored), initial=0.0)), SMALLEST)


def differences(numbers: Numbers, stored: Numbers) -> dict[str, float]:
    """Of every name in one of the two, how much the numbers differ; infinity for one alone."""
    return {
        name: largest_difference(numbers[name], stored[name])
        if name in numbers and name in stored
        else np.inf
        for name in {**stored, **numbers}
    }


def record(groups: Sequence[str]) -> None:
    """Compute numbers of groups, say how far they are from those recorded, and record them."""
    stored = read() if STORED.exists() else {}
    lines, changes = [], {}
    for group, compute in GROUPS.items():
        numbers = digest(compute()) if group in groups else stored[group]
        found = differences(numbers, stored.get(group, {}))
        changes |= {f"{group}: {name}": change for name, change in found.items() if change}
        entries = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(value.tolist())}" for name, value in numbers.items()
        )
        lines.append(f"{json.dumps(group)}: {{\n{entries}\n}}")
    gone = [group for group in stored if group not in GROUPS]
    print(f"{len(changes)} entries changed; groups that are gone: {gone}")
    for name, change in sorted(changes.items(), key=lambda item: -item[1]):
        print(f"{change:.1e}  {name}")
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    record(sys.argv[1:] or list(GROUPS))
