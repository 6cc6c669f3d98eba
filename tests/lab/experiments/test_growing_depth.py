from __future__ import annotations

from pathlib import Path

import numpy as np

from gpflow_dwp.lab.experiments.growing_depth import GrowingDepth


def test_models_grow_and_are_kept(uci_folder: Path, tmp_path: Path) -> None:
    """Catches a layer too many, divergences of other layers, and models that are trained twice."""
    experiment = GrowingDepth(
        *("yacht", "A", 0, 12, 2, tmp_path), num_inducing=8, uci_folder=uci_folder
    )
    experiment.check()

    rows = list(experiment.rows())

    assert [row["depth"] for row in rows] == [1, 2]
    for row in rows:
        assert np.isfinite([row["elbo"], row["test_log_likelihood"], row["rmse"]]).all()
        divergences = [float(nats) for nats in row["divergences"].split("; ")]
        assert len(divergences) == row["depth"]
        if row["depth"] > 1:
            np.testing.assert_allclose(row["divergence_of_added"], divergences[-2], atol=0.01)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert list(experiment.rows()) == rows
    assert kept == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
