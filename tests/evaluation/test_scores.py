"""Scores of predictions, and what becomes of them in other units."""

from __future__ import annotations

import numpy as np
import pytest

from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import Scores

Y = np.array([2.0, 5.0])


def test_numbers() -> None:
    scores = Scores.of_numbers(
        Y, np.array([1.0, 2.0]), crps=0.5, log_likelihood=-1.0, seconds=2.0, elbo=-3.0
    )
    assert scores == Scores(-3.0, -1.0, np.sqrt(5.0), 2.0, crps=0.5, r2=1.0 - 5.0 / 2.25)


def test_labels() -> None:
    probabilities = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.1, 0.1, 0.8]])
    scores = Scores.of_labels(np.ones(3), probabilities, log_likelihood=-1.0, seconds=2.0)
    assert scores.error == pytest.approx(2.0 / 3.0)
    assert scores.ece == pytest.approx((0.5 + 0.6 + 0.8) / 3.0)
    assert (scores.elbo, scores.crps, scores.r2) == (None, None, None)


def test_units() -> None:
    target, scores = Standardiser([100.0], [20.0]), Scores(-3.0, -1.0, 0.5, 2.0, crps=0.25, r2=0.1)
    raw = scores.in_raw_units(target)
    # A density per unit is less by the factor of the scale, a distance is more by it.
    assert raw == pytest.approx(
        (-3.0 - np.log(20.0), -1.0 - np.log(20.0), 10.0, 2.0, 5.0, 0.1, None)
    )
    assert scores.in_raw_units(None) == scores
    assert Scores(None, 1.0, 0.5, 2.0).in_raw_units(target).elbo is None
