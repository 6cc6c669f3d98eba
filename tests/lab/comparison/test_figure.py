"""The figure: each model where its score is."""

from __future__ import annotations

import numpy as np
import pytest
from comparison_results import compared

from gpflow_dwp.lab.comparison.figure import plot_relative_scores
from gpflow_dwp.lab.comparison.scoreboard import comparison_frame, comparison_scores


def test_distances_to_the_best_of_each_table() -> None:
    """Differences of densities, ratios of scores with a unit; the tables of a task in one panel."""
    records = [
        *compared("yacht", "exact-gp", [1.0, 3.0]),
        *compared("yacht", "dwp", [2.0, 4.0]),
        *compared("boston", "exact-gp", [50.0]),
        *compared("boston", "dwp", [40.0]),
        *compared("wine", "svc", [0.1]),
    ]

    figure = plot_relative_scores(comparison_scores(comparison_frame(records)))

    nlpd, crps, nll, _ = figure.axes
    assert [label.get_text() for label in nlpd.get_yticklabels()] == ["yacht", "boston"]
    places = {
        (ax, line.get_label()): np.asarray(line.get_xydata())
        for ax in (nlpd, crps, nll)
        for line in ax.get_lines()
    }
    # What is further than 3 is drawn there.
    np.testing.assert_allclose(places[nlpd, "exact-gp"], [[0.0, 0.0], [3.0, 1.0]])
    np.testing.assert_allclose(places[nlpd, "dwp"], [[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(places[crps, "exact-gp"], [[0.0, 0.0], [0.25, 1.0]])
    np.testing.assert_allclose(places[nll, "svc"], [[0.0, 0.0]])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["exact-gp", "svc", "dwp"]


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_what_is_not_finite_is_drawn_at_the_edge(value: float) -> None:
    records = [*compared("yacht", "exact-gp", [1.0]), *compared("yacht", "dwp", [value])]

    figure = plot_relative_scores(comparison_scores(comparison_frame(records)))

    (own,) = [line for line in figure.axes[0].get_lines() if line.get_label() == "dwp"]
    assert own.get_xdata()[0] == 3.0
