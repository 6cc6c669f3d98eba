from __future__ import annotations

from pathlib import Path

import numpy as np

from gpflow_dwp.lab.experiments import compare_iterate_posteriors


def test_every_prediction_is_scored(uci_folder: Path) -> None:
    rows = list(
        compare_iterate_posteriors(
            "yacht",
            0,
            num_steps=30,
            num_collecting_steps=220,
            num_inducing=8,
            uci_folder=uci_folder,
        )
    )

    assert [row["predictor"] for row in rows] == [
        "trained",
        "last iterate",
        "SWA",
        "SWAG",
        "factor analysis",
    ]
    for row in rows:
        assert np.isfinite(row["test_log_likelihood"])
        assert 0.0 < row["rmse"] < 20.0
