"""Scores against depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpflow_dwp.evaluation import plot_depth_effect


def test_means_and_standard_errors() -> None:
    scores = {"deep": np.array([[1.0, 3.0], [4.0, 4.0]]), "shallow": [0.0, 1.0]}

    ax = plot_depth_effect([2, 5], scores, label="test log-likelihood")

    deep, shallow = ax.containers
    np.testing.assert_array_equal(deep[0].get_xdata(), [2, 5])
    np.testing.assert_allclose(deep[0].get_ydata(), [2.0, 4.0])
    (bars,) = deep[2]
    # The standard deviation of 1 and 3 is √2, and that of their mean 1.
    np.testing.assert_allclose([s[:, 1] for s in bars.get_segments()], [[1.0, 3.0], [4.0, 4.0]])
    np.testing.assert_allclose(shallow[0].get_ydata(), [0.0, 1.0])
    assert not shallow[2]
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["deep", "shallow"]
    assert ax.get_ylabel() == "test log-likelihood"


@pytest.mark.parametrize(
    ("depths", "scores", "message"),
    [
        ([1, 2], {}, "at least one depth and one model"),
        ([], {"a": []}, "at least one depth and one model"),
        ([1, 2], {"a": [1.0]}, r"scores of 'a' must have shape \[2\] or \[2, R\], got \[1\]"),
        ([1, 2], {"a": np.zeros((2, 0))}, r"got \[2, 0\]"),
    ],
)
def test_refuses(depths: list[int], scores: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_depth_effect(depths, scores)
