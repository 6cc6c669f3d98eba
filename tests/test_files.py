"""Files that replace others in one step, and checksums of what JSON holds."""

from __future__ import annotations

import errno
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gpflow_dwp.files import held, read_arrays, read_sealed, replacing, seal, write_whole


def test_a_file_stays_as_it_was_where_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    (tmp_path / ".kept.txt.partial").write_text("half of it")  # by a process that was killed
    write_whole(path, "old")
    assert list(tmp_path.iterdir()) == [path]

    def write_half(partial: Path) -> None:
        partial.write_text("half of the n")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="kept.txt") as caught, replacing(path) as partial:
        write_half(partial)
    assert caught.value.filename == str(path)
    with pytest.raises(FileNotFoundError), replacing(path):
        pass  # nothing is written
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_seals_survive_json_and_no_flipped_digit_does(tmp_path: Path) -> None:
    fields = {"jitter": 1e-6, "names": ("a", "b"), 3: None, "nested": {"b": 1.5, "a": float("inf")}}
    path, text = tmp_path / "fields.json", json.dumps(seal(fields))
    path.write_text(text)
    assert read_sealed(path) == json.loads(json.dumps(fields))
    for place, character in enumerate(text):
        if character.isdigit():
            flipped = text[:place] + ("7" if character != "7" else "8") + text[place + 1 :]
            path.write_text(flipped)
            with pytest.raises(ValueError, match="checksum"):
                read_sealed(path)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 1}', b"[" * 5000, b"\xff"])
def test_damaged_files_are_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "fields.json"
    write_whole(path, json.dumps(seal({"a": 1})))
    assert read_sealed(path) == {"a": 1}
    path.write_bytes(content)
    with pytest.raises(ValueError, match="fields.json is damaged: "):
        read_sealed(path)


def test_what_is_held_alone_is_held_by_nobody_else(tmp_path: Path) -> None:
    taken = pytest.raises(BlockingIOError, match="in use by another process")
    with held(tmp_path), taken, held(tmp_path):
        pass
    with held(tmp_path):
        pass


def archive_of(*, compression: int = zipfile.ZIP_STORED, **contents: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in contents.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def array_of(shape: tuple[int, ...], content: bytes, descr: str = "<f8") -> bytes:
    """An array's file, whose header may be wrong."""
    buffer = io.BytesIO()
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, fields)
    return buffer.getvalue() + content


def test_arrays_are_read_as_numpy_writes_them() -> None:
    arrays = {
        "matrix": np.arange(6.0).reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "none": np.zeros((0, 3), np.float32),
        "number": np.array(2),
        "text": np.array("word"),
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    read = read_arrays(buffer.getvalue())
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype


def test_damaged_arrays_take_no_room() -> None:
    for content, message in (
        (b"", "not a zip file"),
        (archive_of(a=b""), ""),
        (archive_of(a=array_of((10**12,), bytes(80))), ""),
        (archive_of(a=array_of((11,), bytes(80))), ""),
        (archive_of(a=array_of((1,), bytes(8), "|O")), "allow_pickle=False"),
        (archive_of(a=array_of((1,), bytes(8)), compression=zipfile.ZIP_DEFLATED), "compressed"),
    ):
        with pytest.raises(ValueError, match=f"no archive of arrays: .*{message}"):
            read_arrays(content)


def test_parts_that_share_their_place_are_refused() -> None:
    content = bytearray(archive_of(a=array_of((500,), bytes(4000)), b=array_of((1,), bytes(8))))
    # Both entries of the directory tell of the first part.
    directory = content.index(b"PK\x01\x02")
    second = content.index(b"PK\x01\x02", directory + 1)
    content[second + 16 : second + 46] = content[directory + 16 : directory + 46]
    with pytest.raises(ValueError, match="larger than the whole"):
        read_arrays(bytes(content))
