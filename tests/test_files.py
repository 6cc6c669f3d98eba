"""Files that replace others in one step, and checksums of what JSON holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpflow_dwp.files import replacing, seal, unseal, write_whole


def test_a_file_stays_as_it_was_where_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    write_whole(path, "old")

    def write_half(partial: Path) -> None:
        partial.write_text("half of the n")
        raise OSError("disk full")

    with pytest.raises(OSError, match="full"), replacing(path) as partial:
        write_half(partial)

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_content_that_was_never_written_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    write_whole(path, b"old")

    with pytest.raises(FileNotFoundError), replacing(path):
        pass

    assert path.read_bytes() == b"old"


def test_seals_survive_json_and_no_flipped_digit_does() -> None:
    fields = {"jitter": 1e-6, "names": ("a", "b"), 3: None, "nested": {"b": 1.5, "a": float("inf")}}
    text = json.dumps(seal(fields))

    assert unseal(json.loads(text)) == json.loads(json.dumps(fields))
    for place, character in enumerate(text):
        if character.isdigit():
            flipped = text[:place] + ("7" if character != "7" else "8") + text[place + 1 :]
            with pytest.raises(ValueError, match="checksum"):
                unseal(json.loads(flipped))


def test_what_has_no_seal_is_refused() -> None:
    with pytest.raises(ValueError, match="no checksum"):
        unseal({"jitter": 1e-6})
