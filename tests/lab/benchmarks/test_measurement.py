"""Figures from timings."""

from __future__ import annotations

import pytest

from gpflow_dwp.lab.benchmarks import Subject, Timings, measure, ratio, summary
from gpflow_dwp.lab.benchmarks.shapes import Shape


def test_ratios_are_taken_turn_by_turn() -> None:
    # The machine was slow in the second turn, for both alike.
    over = Timings([2.0, 20.0, 2.0], [], 1.0)
    under = Timings([1.0, 10.0, 1.0], [], 1.0)

    figure = ratio("over / under", over, under, at_most=1.5)

    assert figure == ("over / under", 2.0, 0.0, 1.5)


def test_spread_is_half_of_the_distance_of_the_quartiles() -> None:
    figure = summary("x", [0.0, 1.0, 2.0, 3.0, 4.0])

    assert (figure.value, figure.spread) == (2.0, 1.0)


def test_a_process_that_ends_by_itself_is_an_error() -> None:
    no_such_dtype = Subject("AB", Shape(5, 1, 3, 2, 2), "float63", floor=True)

    with pytest.raises(RuntimeError, match="The process that times .* ended with code 1"):
        measure([no_such_dtype], turns=1, threads=1)
