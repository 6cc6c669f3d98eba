"""The command for experiments, whose slow ones have stand-ins here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_line import run
from package_source import ROOT

from gpflow_dwp.lab.experiments.deep_wishart_iterates import DeepWishart
from gpflow_dwp.lab.experiments.factor_analysis import FactorAnalysis
from gpflow_dwp.lab.experiments.growing_depth import GrowingDepth
from gpflow_dwp.lab.experiments.multi_swag import MultiSWAGOfWishart


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    calls: list[tuple[str, int]] = []

    def rows(self: DeepWishart) -> Iterator[dict[str, Any]]:
        calls.append((self.dataset, self.split))
        if calls[-1] == ("boston", 1):
            raise KeyboardInterrupt
        key = {"dataset": self.dataset, "split": self.split, "num_steps": self.steps}
        key["num_collecting_steps"] = self.collecting_steps
        yield {**key, "predictor": "SWA", "test_log_likelihood": -1.0 - self.split, "rmse": 2.0}

    monkeypatch.setattr(DeepWishart, "rows", rows)
    monkeypatch.setattr(DeepWishart, "load", lambda _: None)
    return calls


def test_parts_are_kept_as_they_are_done(
    asked: list[tuple[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "table.csv"
    command = ("experiment", "deep-wishart", "--out", out, "--splits", 2, "--datasets")

    assert run(*command, "yacht") == 0
    assert "yacht" in capsys.readouterr().out
    assert run(*command, "yacht", "boston") == 130  # ended by Ctrl-C
    message = f"interrupted; finished parts are in {out}, and the same command runs the others\n"
    assert capsys.readouterr().err.endswith(f"gpflow-dwp experiment: {message}")
    assert asked == [("yacht", 0), ("yacht", 1), ("boston", 0), ("boston", 1)]
    table = pd.read_csv(out)
    assert list(table["dataset"]) == ["yacht", "yacht", "boston"]
    assert {"versions", "commit", "machine", "date", "threads"} <= set(table.columns)


def test_without_a_finished_part_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FactorAnalysis, "rows", stop)
    out = tmp_path / "table.csv"
    assert run("experiment", "factor-analysis", "--out", out, "--dimensions", "20") == 130
    assert capsys.readouterr().err.endswith("interrupted, nothing was written\n")
    assert not out.exists()


def test_linear_regression_beside_its_posterior(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "table.csv"

    assert run("experiment", "linear-posterior", "--trials", 2, "--out", out, "--quiet") == 0
    output = capsys.readouterr()
    assert "distance_of_covariances" in output.out and not output.err
    assert len(pd.read_csv(out)) == 14


# Options that are those of a kept table, and others, with what is said of them.
KEPT = {
    "deep-wishart": (
        "deep_wishart.csv",
        (),
        ("--steps", 7),
        "holds dataset yacht, split 0 with --steps 8000, not 7; choose another name",
    ),
    "factor-analysis": ("factor_analysis.csv", (), ("--trials", 7), "with --trials 10, not 7"),
    "linear-posterior": (
        "linear_posterior.csv",
        ("--trials", 60),
        (),
        "holds the experiment with --trials 60, not 10; choose another name",
    ),
    "linear-prediction": (
        "linear_prediction.csv",
        ("--datasets", "energy"),
        ("--trials", 7, "--datasets", "energy"),
        "holds dataset energy with --trials 10, not 7",
    ),
    "another": ("deep_wishart.csv", None, (), "holds another experiment; choose another name"),
}


@pytest.mark.parametrize("what", KEPT)
def test_kept_tables_are_read_and_stay(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, same, others, message = KEPT[what]
    command = "factor-analysis" if what == "another" else what
    out = tmp_path / name
    content = (ROOT / "ci" / "results" / "iterates" / name).read_bytes()
    out.write_bytes(content)

    if same is not None:
        assert run("experiment", command, "--out", out, *same) == 0
    assert run("experiment", command, "--out", out, *others) == 2
    assert message in capsys.readouterr().err
    assert out.read_bytes() == content


MISTAKES = {
    "no such split of depth": (
        ("depth", "--datasets", "protein", "--splits", 6),
        "split must be an integer from 0 to 4 for protein, got 5",
    ),
    "no such data set": (
        ("linear-prediction", "--datasets", "yacht", "nope"),
        "dataset must be one of boston, ",
    ),
    "no such data set for a deep process": (
        ("deep-wishart", "--datasets", "nope"),
        "dataset must be one of boston, ",
    ),
    "fewer dimensions than factors": (
        ("factor-analysis", "--dimensions", 100, 5),
        "dimension must be an integer of at least 10, got 5",
    ),
    "one fold": (("linear-prediction", "--trials", 1), "trials must be an integer of at least 2"),
    "more folds than rows": (
        ("linear-prediction", "--datasets", "yacht", "--trials", 309),
        "trials must be at most the rows of yacht, 308, got 309",
    ),
    "no such split": (
        ("deep-wishart", "--datasets", "protein", "--splits", 6),
        "split must be an integer from 0 to 4 for protein, got 5",
    ),
    "no such folder": (
        ("linear-prediction", "--datasets", "yacht", "--uci-folder", "nowhere"),
        "no such file",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found_before_anything_runs(
    mistake: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    uci_folder: Path,
) -> None:
    monkeypatch.setattr("gpflow_dwp.lab.experiments.experiment.describe_provenance", _began)
    options, message = MISTAKES[mistake]
    folder = () if "--uci-folder" in options else ("--uci-folder", uci_folder)
    out = tmp_path / "table.csv"

    assert run("experiment", *options, *folder, "--out", out) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not out.exists()


def _began(*_: Any) -> None:
    raise AssertionError("the experiment began")


def test_each_model_grows_on_each_split(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Catches models in another folder, options that are lost, and a kept table of other depths."""

    def rows(self: GrowingDepth) -> Iterator[dict[str, Any]]:
        assert (self.steps, self.directory) == (30, tmp_path / "table.models")
        for depth in range(1, self.deepest + 1):
            key = {name: getattr(self, name) for name in (*self.key, "deepest")}
            scores = dict.fromkeys(self.values, -1.0 * depth)
            yield {**key, "depth": depth, "num_steps": self.steps, **scores}

    monkeypatch.setattr(GrowingDepth, "rows", rows)
    monkeypatch.setattr(GrowingDepth, "check", lambda _: None)
    command = ("experiment", "depth", "--datasets", "yacht", "--splits", 2, "--steps", 30)
    command += ("--out", tmp_path / "table.csv", "--quiet")

    assert run(*command, "--models", "GW", "DGP", "--deepest", 3) == 0
    table = pd.read_csv(tmp_path / "table.csv")
    assert list(table["model"]) == 2 * (3 * ["GW"] + 3 * ["DGP"])
    assert run(*command, "--models", "GW", "--deepest", 4) == 2
    assert "with --deepest 3, not 4" in capsys.readouterr().err


def test_members_are_trained_where_they_are_asked_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All members of all parts at once, so that none waits for another part."""
    calls: list[tuple[int, dict[str, Any]]] = []

    def train(parts: list[MultiSWAGOfWishart], **arguments: Any) -> None:
        assert {part.directory for part in parts} == {tmp_path / "table.members"}
        calls.append((sum(len(part.cells()) for part in parts), arguments))

    def rows(self: MultiSWAGOfWishart) -> Iterator[dict[str, Any]]:
        key = {"dataset": self.dataset, "split": self.split, "num_steps": self.steps}
        key["num_members"] = self.members
        yield {**key, "predictor": "SWAG", "test_log_likelihood": -1.0, "rmse": 2.0}

    monkeypatch.setattr("gpflow_dwp.lab.experiments.multi_swag.train_members", train)
    monkeypatch.setattr(MultiSWAGOfWishart, "rows", rows)
    monkeypatch.setattr(MultiSWAGOfWishart, "check", lambda _: None)
    command = ["experiment", "multi-swag", "--datasets", "yacht", "--splits", "2", "--members", "4"]
    command += ["--ray", "auto", "--jobs", "3", "--quiet", "--out", str(tmp_path / "table.csv")]

    assert run(*command) == 0
    assert run(*command) == 0  # all is there

    assert calls == [(8, {"progress": False, "jobs": 3, "ray": "auto", "gpus": 0.0})]
    assert "SWAG" in capsys.readouterr().out
