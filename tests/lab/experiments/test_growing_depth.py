from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpflow_dwp.lab.experiments.growing_depth import GrowingDepth


@pytest.mark.slow
def test_models_grow_and_are_kept(uci_folder: Path, tmp_path: Path) -> None:
    """Catches a layer too many, divergences of other layers, and models that are trained twice."""
    experiment = GrowingDepth(
        *("yacht", 0, 12, "A", 2, tmp_path), num_inducing=8, uci_folder=uci_folder
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


def test_a_model_that_was_interrupted_is_not_kept(
    uci_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches half-trained models that later depths, and the next run, would start at."""

    class Ended:
        num_steps, stop_reason = 3, "interrupted"

    monkeypatch.setattr(f"{GrowingDepth.__module__}.fit", lambda *_, **__: Ended)
    experiment = GrowingDepth(
        *("yacht", 0, 12, "A", 2, tmp_path), num_inducing=8, uci_folder=uci_folder
    )
    with pytest.raises(KeyboardInterrupt):
        list(experiment.rows())
    assert not list(tmp_path.iterdir())
