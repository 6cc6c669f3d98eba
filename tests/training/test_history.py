"""What a run leaves behind."""

from __future__ import annotations

import dataclasses

import numpy as np

from gpflow_dwp.training import TrainingHistory

HISTORY = TrainingHistory(
    data_term=np.array([1.0, 2.0]),
    log_ratios=np.array([[-1.0, -2.0], [-3.0, -5.0]]),
    num_data=4,
    seconds=0.1,
    stop_reason="took all 2 steps",
)


def test_the_bound_is_the_sum_of_its_terms() -> None:
    np.testing.assert_allclose(HISTORY.elbo, [-2.0, -6.0])
    np.testing.assert_allclose(HISTORY.elbo_per_datum, [-0.5, -1.5])
    assert HISTORY.num_steps == 2


def test_it_is_shown_in_one_line() -> None:
    ended = "<TrainingHistory of 2 steps in 0.1 s, elbo_per_datum ends at -1.5: took all 2 steps>"
    assert repr(HISTORY) == ended

    nothing = dataclasses.replace(HISTORY, data_term=np.zeros(0), log_ratios=np.zeros((0, 2)))
    assert repr(nothing) == "<TrainingHistory of 0 steps in 0.1 s: took all 2 steps>"


def test_a_run_that_goes_on_is_one_course() -> None:
    """Catches steps that are lost, and a time or an end that is the first run's alone."""
    both = HISTORY.followed_by(dataclasses.replace(HISTORY, data_term=np.array([5.0, 6.0])))
    np.testing.assert_allclose(both.data_term, [1.0, 2.0, 5.0, 6.0])
    assert (both.num_steps, both.log_ratios.shape, both.seconds) == (4, (4, 2), 0.2)
    assert both.stop_reason == "took all 2 steps, then took all 2 steps"
