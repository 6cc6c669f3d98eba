"""The protocols that fit knows by name."""

from __future__ import annotations

import numpy as np
import pytest

from gpflow_dwp.training import PROTOCOLS


def test_learning_rates() -> None:
    papers = PROTOCOLS["papers"].learning_rate(100)
    fast = PROTOCOLS["fast"].learning_rate(100)

    np.testing.assert_allclose([float(papers(step)) for step in (0, 99)], [1e-2, 1e-3])
    np.testing.assert_allclose(
        [float(fast(step)) for step in (0, 50, 100)],
        [3e-2, 0.5 * (3e-2 + 3e-4), 3e-4],
        rtol=1e-6,
    )


@pytest.mark.parametrize(
    ("name", "num_steps", "expected"),
    [
        ("papers", 20_000, 1_000),
        ("papers", 100, 50),
        ("fast", 6_000, 1_000),
        ("fast", 5, 0),
        ("vmg", 6_000, 0),
    ],
)
def test_annealing_is_over_before_the_run_is(name: str, num_steps: int, expected: int) -> None:
    assert PROTOCOLS[name].kl_annealing_steps(num_steps) == expected


@pytest.mark.parametrize(
    ("name", "num_rows", "expected"),
    [("papers", 2_000, None), ("fast", 2_001, 1_000), ("vmg", 277, 20), ("vmg", 8_611, 172)],
)
def test_batch_sizes(name: str, num_rows: int, expected: int | None) -> None:
    assert PROTOCOLS[name].batch_size(num_rows) == expected
