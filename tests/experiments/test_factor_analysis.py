from __future__ import annotations

import numpy as np
import pytest

from gpflow_dwp.experiments import recover_factor_models

pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return list(
        recover_factor_models(12, 10.0, rank=2, num_trials=2, sample_sizes=(20, 200, 3_000))
    )


def test_every_algorithm_size_and_trial_has_a_row(rows: list[dict]) -> None:
    keys = {(row["num_samples"], row["trial"], row["algorithm"]) for row in rows}

    assert len(keys) == len(rows) == 3 * 2 * 3


def test_distances_fall_with_the_number_of_vectors(rows: list[dict]) -> None:
    for algorithm in ("EM", "SVD"):
        means = [
            np.mean(
                [
                    row["relative_distance"]
                    for row in rows
                    if (row["algorithm"], row["num_samples"]) == (algorithm, size)
                ]
            )
            for size in (20, 200, 3_000)
        ]
        assert means[0] > means[1] > means[2]
        assert means[2] < 0.15


def test_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"sample_sizes\[0\] must be an integer of at least 2"):
        next(recover_factor_models(12, 10.0, rank=2, sample_sizes=(1,)))
