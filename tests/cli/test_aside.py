"""What is set aside comes back, or goes, as often as it was set aside."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import content

from gpflow_dwp.cli.aside import forget_aside, put_back, set_aside


@pytest.fixture(params=["file", "folder"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / "log.csv" / "state" if request.param == "folder" else tmp_path / "log.csv"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_it_comes_back_in_turn(path: Path, tmp_path: Path) -> None:
    top = tmp_path / "log.csv"
    for text in ("first", "second"):
        write(path, text)
        set_aside(top)
        assert not top.exists()
    write(path, "third")
    for text in ("second", "first", "first"):
        put_back(top)
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [top]


def test_it_is_forgotten_at_once(path: Path, tmp_path: Path) -> None:
    top = tmp_path / "log.csv"
    for text in ("first", "second", "third"):
        set_aside(top)
        write(path, text)
    forget_aside(top)
    assert list(content(tmp_path).values()) == [b"third"]
    assert list(tmp_path.iterdir()) == [top]


def test_where_nothing_was_nothing_happens(tmp_path: Path) -> None:
    for step in (set_aside, put_back, forget_aside):
        step(tmp_path / "absent")
    assert list(tmp_path.iterdir()) == []
