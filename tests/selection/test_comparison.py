"""How models are compared by scores of rows, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest

from gpflow_dwp.selection.comparison import compare
from gpflow_dwp.selection.scores import RowScores, is_ahead, is_better

RNG = np.random.default_rng(0)
NOISE = RNG.standard_normal(200)
BASE = RowScores(NOISE, np.abs(NOISE))
BETTER = RowScores(NOISE + 0.5 + RNG.standard_normal(200), np.abs(NOISE) * 0.9)


def test_better_is_by_density_if_crps_does_not_object() -> None:
    """Catches scores with the wrong sign, and gains of nothing."""
    assert is_better(BETTER, BASE) and not is_better(BASE, BETTER)
    assert not is_better(BETTER._replace(crps=1.01 * BASE.crps), BASE)
    assert not is_better(BETTER._replace(is_sane=False), BASE)
    assert not is_better(BASE._replace(log_density=NOISE + 0.01, crps=0.9 * BASE.crps), BASE)
    level = BASE.crps + 0.001 + 0.1 * RNG.standard_normal(200)
    assert is_better(BETTER._replace(crps=level), BASE)
    unsure = BETTER._replace(log_density=NOISE + 0.1 + RNG.permutation(NOISE))
    assert is_ahead(unsure, BASE) and not is_ahead(unsure, BASE, errors=2.0)
    assert is_better(unsure, BASE) and not is_better(unsure._replace(crps=level), BASE)
    shifts = RNG.permutation(NOISE - NOISE.mean())
    within_error = BETTER._replace(log_density=NOISE + 0.1 + 5.0 * shifts)
    assert is_better(within_error, BASE)
    assert not is_better(within_error._replace(crps=BASE.crps - 0.005 + 0.1 * shifts), BASE)


def test_a_row_that_is_missed_is_missed_once() -> None:
    """Catches a single row of heavy tails that decides by how far it is missed."""
    density = np.where(np.arange(200) == 0, -1e4, BETTER.log_density)
    missed = BETTER._replace(log_density=density)
    assert is_better(missed, BASE)
    said = compare("Depth 2", "depth 1", missed, BASE).sentence()
    assert "where no row counts for more than 20" in said
    assert "counts for more" not in compare("Depth 2", "depth 1", BETTER, BASE).sentence()


@pytest.mark.parametrize("scale", [None, 10.0])
def test_a_comparison_says_what_it_found(scale: float | None) -> None:
    """Catches sentences that are false, or in other units than asked for."""
    k_hat = np.where(np.arange(200) < 30, 0.8, 0.1)
    found = compare("Depth 2", "depth 1", BETTER._replace(k_hat=k_hat), BASE)
    said = found.sentence(scale)
    assert found.is_kept and "Depth 2 predicts each row from all others better than depth 1" in said
    factor = scale or 1.0
    density, crps = found.new.log_density - np.log(factor), found.new.crps * factor
    assert f"log density {density:.3f} and" in said and f"CRPS {crps:.3g} and" in said
    assert ("standardised" in said) == (scale is None)
    np.testing.assert_allclose(found.gain, np.mean(BETTER.log_density - BASE.log_density))
    assert "rough for 15% of the rows" in said
    refused = compare("Depth 2", "depth 1", BETTER, BASE, may_be_kept=False)
    assert not refused.is_kept and "It is not kept, as its bound" in refused.sentence()
    behind = compare("Depth 2", "depth 1", BASE, BETTER)
    assert not behind.is_kept and "no better than" in behind.sentence()
