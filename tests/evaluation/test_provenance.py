"""Provenance: versions, commit, machine."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import datetime, timedelta, timezone
from importlib.metadata import version
from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.evaluation import provenance as module
from gpflow_dwp.evaluation.provenance import count_of_other_code, describe_provenance


def test_what_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf, "__version__", "2.99.0-nightly")
    described = describe_provenance("float32", 3)

    assert json.loads(json.dumps(described)) == described
    assert (described["dtype"], described["threads"]) == ("float32", 3)
    assert described["versions"]["gpflow"] == gpflow.__version__
    assert described["versions"]["tensorflow"] == "2.99.0-nightly"
    assert described["versions"]["numpy"] == np.__version__
    assert "cores" in described["machine"]
    date = datetime.fromisoformat(described["date"])
    assert date.utcoffset() == timedelta(0)
    assert datetime.now(timezone.utc) - date < timedelta(minutes=10)


def test_gpus_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds on a GPU must not pass for the CPU's."""
    names = {"first": {"device_name": "NVIDIA H100"}, "second": {}}
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: list(names))
    monkeypatch.setattr(tf.config.experimental, "get_device_details", names.get)

    assert describe_provenance("float64", 1)["machine"].endswith(", NVIDIA H100, GPU")


def test_versions_of_further_packages_are_told_where_there_are_any() -> None:
    versions = describe_provenance("float64", 1, ("tqdm", "no-such-package"))["versions"]

    assert versions["tqdm"] == version("tqdm") and "no-such-package" not in versions


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in a new repository with one commit, which the module takes for its own."""
    room = tmp_path / "package" / "room"
    room.mkdir(parents=True)
    (room.parent / "__init__.py").write_text("")
    (tmp_path / "other.txt").write_text("")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "other.txt")
    git(tmp_path, "commit", "--quiet", "-m", "one")
    monkeypatch.setattr(module, "__file__", str(room / "provenance.py"))
    return room.parent


def git(directory: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    try:
        subprocess.run(["git", *identity, *arguments], cwd=directory, check=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")


def test_commit_of_the_repository_that_tracks_the_package(package: Path) -> None:
    assert describe_provenance("float64", 1)["commit"] is None

    git(package, "add", ".")
    git(package, "commit", "--quiet", "-m", "two")
    commit = describe_provenance("float64", 1)["commit"]
    assert re.fullmatch("[0-9a-f]{40}", commit)

    (package / "__init__.py").write_text("changed = True\n")
    assert describe_provenance("float64", 1)["commit"] == f"{commit}-dirty"


def test_results_of_other_code_are_told(package: Path) -> None:
    released = describe_provenance("float64", 1)
    older = {**released, "versions": {**released["versions"], "gpflow-dwp": "0.0.1"}}
    assert count_of_other_code([released, older, {}, released]) == 2

    git(package, "add", ".")
    git(package, "commit", "--quiet", "-m", "two")
    committed = describe_provenance("float64", 1)
    assert count_of_other_code([committed, released, {**committed, "commit": "0" * 40}]) == 1


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "__file__", str(tmp_path / "provenance.py"))

    assert describe_provenance("float64", 1)["commit"] is None
