"""``gpflow-dwp mnist`` on tiny files in MNIST's form."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
from command_line import run

from gpflow_dwp.models import load_model
from gpflow_dwp.training import TrainingHistory

TINY = (
    *("--hidden", "6", "5", "--num-pseudo-data", "3", "--validation-rows", "20"),
    *("--epochs", "3", "--batch-size", "50"),
    *("--prediction-samples", "5", "--quiet"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """220 training and 40 test images of 3 x 4 pixels."""
    folder = tmp_path_factory.mktemp("mnist")
    rng = np.random.default_rng(0)
    for name, count in (("train", 220), ("t10k", 40)):
        labels = rng.integers(0, 10, count)
        images = rng.integers(0, 256, (count, 12))
        for kind, array in (("images-idx3", images.reshape(-1, 3, 4)), ("labels-idx1", labels)):
            header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            path = folder / f"{name}-{kind}-ubyte"
            path.write_bytes(header + array.astype(np.uint8).tobytes())
    return folder


@pytest.mark.slow
def test_trains_judges_saves_and_repeats(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a float32 that stays, and a configuration that does not make the same run again."""
    out, again = folder / "out", folder / "again"
    assert run("mnist", "--folder", folder, "--out", out, *TINY) == 0

    result = json.loads((out / "results.json").read_text())
    printed = capsys.readouterr().out
    for name in ("validation", "test"):
        assert f"{name} error: {result[f'{name}_error_percent']:.2f}%" in printed
        assert 0.0 < result[f"{name}_error_percent"] <= 100.0
    assert "in print" not in printed
    assert result["steps"] == 3 * 4
    assert result["options"]["hidden"] == [6, 5]
    assert result["provenance"]["dtype"] == "float32" and "commit" in result["provenance"]
    assert gpflow.default_float() is np.float64
    with gpflow.config.as_context():
        gpflow.config.set_default_float(np.float32)
        model = load_model(out / "model")
    assert [layer.num_outputs for layer in model.layers] == [6, 5, 10]
    assert model.layers[0].dropout.dtype == np.float32
    for directory in (out, out / "model"):
        assert run("info", directory, "--json") == 0
        described = json.loads(capsys.readouterr().out)["model"]
        assert (described["class"], described["dtype"]) == ("MatrixGaussianNetwork", "float32")
    assert gpflow.default_float() is np.float64

    assert run("mnist", "--config", out / "config.yaml", "--out", again, "--quiet") == 0
    repeated = json.loads((again / "results.json").read_text())
    for name in ("validation_error_percent", "test_error_percent", "elbo_per_datum", "steps"):
        assert repeated[name] == result[name]


def test_ctrl_c_is_told_of(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_early(*_: Any, **__: Any) -> TrainingHistory:
        return TrainingHistory(
            np.zeros(12), np.zeros([12, 3]), 200, 1.0, "interrupted after step 12"
        )

    monkeypatch.setattr("gpflow_dwp.training.fit", stop_early)
    assert run("mnist", "--folder", folder, *TINY) == 0
    assert capsys.readouterr().out.startswith("Training was interrupted after step 12.\n")
    assert run("mnist", "--folder", folder, *TINY, "--json") == 0
    assert json.loads(capsys.readouterr().out)["stop_reason"] == "interrupted after step 12"


def test_training_that_fails_leaves_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gpflow_dwp.training.fit", stop)
    assert run("mnist", "--folder", folder, "--out", folder / "failed", *TINY) == 130
    assert capsys.readouterr().err.endswith("interrupted, nothing was written\n")
    assert not (folder / "failed").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--validation-rows", "220"], "--validation-rows 220 leaves none of 220 training images"),
        (["--learning-rate", "0"], "--learning-rate: must be a positive number, got '0'"),
        (["--largest-dropout", "2"], "largest_dropout must be above 0 and at most 1, got 2.0"),
        (["--epochs", "0"], "--epochs: must be a positive integer, got '0'"),
        (["--out", "."], ". exists; choose another --out"),
        (["--folder", "nothing"], "train-images-idx3-ubyte.gz: no such file"),
    ],
)
def test_refuses_options(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert run("mnist", "--folder", folder, *TINY, *options) == 2
    assert message in capsys.readouterr().err
