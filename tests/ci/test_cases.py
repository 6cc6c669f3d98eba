"""Cases of the default model: the same rows for a name and a seed, everywhere and always."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cases.designs import load
from cases.functions import FUNCTIONS
from default_model import KEPT, far_behind

# The means of targets, of rows for training and test, for seed 10.
_MEANS = """
step 0.4737483; three_steps -0.04461969; higdon 0.2460101; xiong -0.06925896; gramacy_lee
-0.0006669985; gramacy_lee_noisy -0.00108856; cliff -0.005616454; schaffer4 0.6527902; g_function
1.02014; borehole 74.73302; friedman 14.32946; additive_steps 1.471892; additive_waves
-0.01567527; additive_wells -1.855571; ratings 2.961111; rain 3.903996; share 0.4927774; claims
2.285185; unix_seconds 9.894876; twelve_orders 0.03596491; rows-20 0.3264438; booth-small
-0.3360839; borehole-levels 80.91088; beam-levels 27.74145; waves-levels 0.06438302; swirl-small
0.3296946; ishigami-small 3.499037; daily-50
0.02204523; periods-50 -0.008474534; ripples-50
0.003878977
"""
MEANS = {name: float(mean) for name, mean in map(str.split, _MEANS.split(";"))}


@pytest.mark.parametrize("name", MEANS)
def test_rows_of_a_seed_stay_what_they_are(name: str) -> None:
    """Catches other draws, or another formula, after which kept results are of other rows."""
    X, y, T, t = load(name, 10)
    assert np.concatenate([y, t]).mean() == pytest.approx(MEANS[name], rel=2e-6, abs=1e-9)
    assert (len(X), T.shape[1]) == (len(y), X.shape[1]) and len(T) == len(t)


def test_a_case_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="name must be of a case, got 'swirl'"):
        load("swirl", 0)


@pytest.mark.parametrize("name", ["additive_steps", "additive_waves", "additive_wells"])
def test_additive_functions_have_no_interactions(name: str) -> None:
    f, (a, b) = FUNCTIONS[name], np.random.default_rng(0).uniform(size=(2, 1, 6))
    a, b = a[:, : f.num_inputs], b[:, : f.num_inputs]
    single = np.where(np.eye(f.num_inputs, dtype=bool), b, a)
    assert np.sum(f(single) - f(a)) == pytest.approx((f(b) - f(a)).item())


def test_scores_far_behind_what_is_kept_are_told(tmp_path: Path) -> None:
    """Catches a check that passes whatever comes, or that compares with another seed."""
    kept = map(json.loads, KEPT.read_text().splitlines())
    row = next(row for row in kept if (row["name"], row["seed"]) == ("step", 1))
    out = tmp_path / "results.jsonl"
    told = [
        ({}, []),
        ({"nlpd": row["nlpd"] + 0.4}, ["'name': 'step', 'seed': 1"]),
        ({"crps": row["crps"] * 1.4}, ["'name': 'step', 'seed': 1"]),
        ({"seed": 99}, ["nothing is kept of these problems, seeds and methods"]),
    ]
    for change, wanted in told:
        out.write_text(json.dumps(row | change) + "\n")
        found = far_behind(out)
        assert len(found) == len(wanted) and all(map(str.__contains__, found, wanted))
