from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpflow_dwp.lab.experiments.deep_wishart_iterates import DeepWishart


@pytest.mark.slow
def test_every_prediction_is_scored(uci_folder: Path) -> None:
    experiment = DeepWishart(
        "yacht", 0, steps=30, collecting_steps=220, num_inducing=8, uci_folder=uci_folder
    )

    rows = list(experiment.rows())

    predictors = ["trained", "last iterate", "SWA", "SWAG", "factor analysis"]
    assert [row["predictor"] for row in rows] == predictors
    for row in rows:
        assert np.isfinite(row["test_log_likelihood"])
        assert 0.0 < row["rmse"] < 20.0
