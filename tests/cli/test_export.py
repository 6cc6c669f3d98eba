"""``gpflow-dwp export``: what TensorFlow says is what ``gpflow-dwp predict`` writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from command_line import TrainedRun, run

from gpflow_dwp.data import Standardiser

Trained = Callable[[str], TrainedRun]
NEW = np.array([[0.3, 1000.0], [-1.0, 950.0], [2.0, 1050.0]])


def test_regression(
    trained: Trained,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result, directory = trained("regression"), trained("regression").directory
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert run("export", directory, "-o", ".", "--num-samples", 7) == 0
    assert "tf.saved_model.load('.')" in capsys.readouterr().out
    train = result.rows()[0]
    inputs, target = Standardiser.fit(train.X), Standardiser.fit(train.Y)
    model, given = result.model(), inputs.transform(NEW)

    got = tf.saved_model.load(".").predict_y(NEW)

    mean, variance = model.predict_y(given, num_samples=7)
    # The inducing points' covariance is as singular as its relative jitter of 1e-6 lets it be, with
    # a condition number of 1e7, so that compiled and eager arithmetic differ by up to some 1e-9.
    np.testing.assert_allclose(got["mean"], target.inverse_transform(mean), rtol=1e-8)
    wanted = target.inverse_transform_variance(variance)
    np.testing.assert_allclose(got["variance"], wanted, rtol=1e-8)
    columns = json.loads(Path("assets.extra/columns.json").read_text())
    encoder = {"columns": ["a", "b"], "categories": {}, "fill": {}, "origins": {}}
    assert columns == {"X": ["a", "b"], "Y": ["price"], "classes": None, "encoder": encoder}


def test_classification(trained: Trained, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Catches labels that are taken for numbers, or classes that have no names."""
    result, given = trained("three classes"), list[dict[str, Any]]()
    monkeypatch.setattr("gpflow_dwp.serving.export_model", lambda *_, **named: given.append(named))

    assert run("export", result.directory, "-o", tmp_path / "model", "--seed", 3) == 0

    (named,) = given
    assert named["output_standardiser"] is None
    assert (named["num_samples"], named["seed"]) == (100, 3)
    mean = result.rows()[0].X.mean(axis=0)
    np.testing.assert_allclose(named["input_standardiser"].mean, mean)
    columns = json.loads(named["assets"]["columns.json"])
    assert columns["Y"] == ["label"] and columns["classes"] == list(result.rows()[0].classes or ())


def test_refuses_what_is_there(
    trained: Trained, refused: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("precious")

    directory = trained("regression").directory
    message = refused("export", directory, "-o", "full")
    assert "full exists and is not an empty directory" in message
    message = refused("export", directory, "-o", "full/notes.txt")
    assert "full/notes.txt is there already, and no directory" in message


def test_refuses_what_is_no_run(refused: Callable[..., str]) -> None:
    assert "absent is not a run directory" in refused("export", "absent", "-o", "model")
