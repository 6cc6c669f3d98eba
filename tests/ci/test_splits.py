"""Splits of the UCI sets: rows and columns as published, files checked when downloaded."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from uci import splits
from uci.splits import SETS, load_uci

# Columns: input, target, a column in no role, constant input. The target is not the last one.
DATA = np.column_stack([np.arange(20) ** 2.0, np.sin(np.arange(20)), np.arange(20), np.ones(20)])
FILES = {
    "index_features": [3, 0],
    "index_target": [1],
    "index_train_2": [5, 0, 19, 2, 7],
    "index_test_2": [1, 18],
}


def test_files_are_downloaded_once_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches other rows than the index files say, and a damaged cache that is believed."""
    folder = tmp_path / "archive" / "yacht" / "data"
    folder.mkdir(parents=True)
    np.savetxt(folder / "data.txt", DATA, fmt="%.18g")
    for name, values in FILES.items():
        np.savetxt(folder / f"{name}.txt", values, fmt="%d")
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  yacht/data/{path.name}"
        for path in sorted(folder.iterdir())
    ]
    (tmp_path / "sums.txt").write_text("\n".join(["#"] * 3 + lines))
    monkeypatch.delenv("GPFLOW_DWP_UCI", raising=False)
    monkeypatch.setattr(splits, "SUMS", tmp_path / "sums.txt")
    monkeypatch.setattr(splits, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(splits, "URL", f"{(tmp_path / 'archive').as_uri()}/")

    found = load_uci("yacht", 2)
    rows, columns = FILES["index_train_2"], FILES["index_features"]
    np.testing.assert_array_equal(found.X_train, DATA[rows][:, columns])
    np.testing.assert_array_equal(found.Y_test, DATA[FILES["index_test_2"]][:, [1]])
    assert not found.train[0][:, 0].any()  # the constant input
    (tmp_path / "cache" / "yacht" / "data" / "data.txt").write_text("1 2 3 4\n" * 20)
    np.testing.assert_array_equal(load_uci("yacht", 2).X_train, found.X_train)
    (folder / "index_test_2.txt").write_text("0\n")
    (tmp_path / "cache" / "yacht" / "data" / "index_test_2.txt").unlink()
    with pytest.raises(ValueError, match=r"index_test_2.txt is not the file that was published"):
        load_uci("yacht", 2)
    with pytest.raises(ValueError, match="naval-propulsion-plant.*: no sum is known; name a copy"):
        load_uci("naval")
    with pytest.raises(ValueError, match="split must be from 0 to 4 for protein, got 5"):
        load_uci("protein", 5)


def digest(indices: npt.ArrayLike) -> str:
    buffer = io.BytesIO()
    np.savetxt(buffer, np.asarray(indices), fmt="%d")
    return hashlib.sha256(buffer.getvalue()).hexdigest()


@pytest.mark.parametrize(("name", "rows"), [("yacht", 308), ("protein", 45730)])
def test_sums_are_those_of_the_published_recipe(name: str, rows: int) -> None:
    """Gal and Ghahramani's ``split_data_train_test.py``: permutations from NumPy's seed 1."""
    folder, num_splits = SETS[name]
    random, text = np.random.RandomState(1), splits.SUMS.read_text()
    for split in range(num_splits):
        train = random.choice(rows, rows, replace=False)[: round(0.9 * rows)]
        assert f"{digest(train)}  {folder}/data/index_train_{split}.txt\n" in text
