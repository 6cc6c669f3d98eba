"""``gpflow-dwp info``: versions, runs, saved models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from command_line import TrainedRun, run

from gpflow_dwp.files import seal

Trained = Callable[[str], TrainedRun]
Printed = pytest.CaptureFixture[str]


def info(capsys: Printed, *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    assert run("info", *arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_versions(capsys: Printed) -> None:
    assert info(capsys)["versions"]["gpflow"] == version("gpflow")
    assert run("info") == 0
    assert f"  tensorflow: {version('tensorflow')}\n" in capsys.readouterr().out


def test_a_run(trained: Trained, capsys: Printed) -> None:
    result = trained("three classes")

    found = info(capsys, result.directory)

    described = found["run"]
    assert described["columns"] == ["a", "b"] and described["classes"] == ["blue", "green", "red"]
    assert (described["steps"], described["training_rows"], described["can_go_on"]) == (
        5,
        30,
        False,
    )
    assert described["scores"] == result.metrics["scores"]
    model = result.model()
    assert found["model"]["trainable_parameters"] == sum(
        int(variable.shape.num_elements()) for variable in model.trainable_variables
    )
    assert found["model"]["layers"] == [
        "WishartLayer (SquaredExponential)",
        "GlobalInducingGPLayer (SquaredExponential)",
    ]
    assert found["model"]["likelihood"] == "Softmax"
    assert info(capsys, result.directory / "model") == {"model": found["model"]}

    assert run("info", result.directory) == 0
    printed = capsys.readouterr().out
    assert "  columns: a, b\n" in printed and "  stop reason: took all 5 steps\n" in printed
    assert "deep Wishart process, depth 2" in printed and "error rate" in printed


def test_an_unfinished_run(tmp_path: Path, capsys: Printed) -> None:
    folder = tmp_path / "run.unfinished"
    folder.mkdir()
    (folder / "config.yaml").write_text("")

    assert info(capsys, tmp_path / "run") == {"run": {"unfinished": True, "has_steps": False}}


def test_scores_of_other_names_are_told_of(
    trained: Trained, refused: Callable[..., str], tmp_path: Path
) -> None:
    """As another version might have written them, whole and sealed."""
    shutil.copytree(trained("three classes").directory, tmp_path / "run")
    scores = json.dumps(seal({"scores": {"x": {"nope": 1}}}))
    (tmp_path / "run" / "metrics.json").write_text(scores)

    assert "metrics.json is damaged: it has scores of another kind" in refused(
        "info", tmp_path / "run"
    )


def test_refuses(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "absent is not a directory" in refused("info", "absent")
    assert "empty" in refused("info", "empty")
