from __future__ import annotations

import numpy as np
import pytest

from gpflow_dwp.lab.experiments.factor_analysis import FactorAnalysis

pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return list(FactorAnalysis(12, 10.0, 2, 2, sample_sizes=(20, 200, 3_000)).rows())


def test_every_algorithm_size_and_trial_has_a_row(rows: list[dict]) -> None:
    keys = {(row["num_samples"], row["trial"], row["algorithm"]) for row in rows}

    assert len(keys) == len(rows) == 3 * 2 * 3 - 2 * 2
    # The online algorithms have learned nothing before their warm-up is over.
    assert {algorithm for size, _, algorithm in keys if size == 20} == {"SVD"}


def test_distances_fall_with_the_number_of_vectors(rows: list[dict]) -> None:
    for algorithm, sizes in {"EM": (200, 3_000), "SVD": (20, 200, 3_000)}.items():
        means = [
            np.mean(
                [
                    row["relative_distance"]
                    for row in rows
                    if (row["algorithm"], row["num_samples"]) == (algorithm, size)
                ]
            )
            for size in sizes
        ]
        assert means == sorted(means, reverse=True)
        assert means[-1] < 0.15
