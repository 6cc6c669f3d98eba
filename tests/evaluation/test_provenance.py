"""Provenance: versions, commit, machine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

import gpflow
import pytest
import tensorflow as tf

from gpflow_dwp.evaluation import provenance
from gpflow_dwp.evaluation.provenance import describe_provenance


def test_what_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs are told: seconds on one must not pass for the CPU's."""
    names = {"first": {"device_name": "NVIDIA H100"}, "second": {}}
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: list(names))
    monkeypatch.setattr(tf.config.experimental, "get_device_details", names.get)
    monkeypatch.setattr(tf, "__version__", "2.99.0-nightly")

    described = describe_provenance("float32", 3)

    assert json.loads(json.dumps(described)) == described
    assert (described["dtype"], described["threads"]) == ("float32", 3)
    assert described["versions"]["gpflow"] == gpflow.__version__
    assert described["versions"]["tensorflow"] == "2.99.0-nightly"
    assert re.search(r" cores, .*, NVIDIA H100, GPU$", described["machine"])
    date = datetime.fromisoformat(described["date"])
    assert date.utcoffset() == timedelta(0)
    assert datetime.now(timezone.utc) - date < timedelta(minutes=10)


def test_commit_of_the_repository_that_tracks_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches the commit of another's repository, in which the package lies untracked."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    room = tmp_path / "package" / "room"
    room.mkdir(parents=True)
    (room.parent / "__init__.py").write_text("")
    monkeypatch.setattr(provenance, "__file__", str(room / "provenance.py"))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "--quiet"], cwd=tmp_path, check=True)
    assert describe_provenance("float64", 1)["commit"] is None
    for arguments in (["add", "."], ["commit", "--quiet", "-m", "one"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    commit = describe_provenance("float64", 1)["commit"]
    assert re.fullmatch("[0-9a-f]{40}", commit)
    (room.parent / "__init__.py").write_text("changed = True\n")
    assert describe_provenance("float64", 1)["commit"] == f"{commit}-dirty"
