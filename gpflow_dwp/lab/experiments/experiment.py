"""One way to run an experiment, and to keep its results in a table."""

from __future__ import annotations

import abc
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import tensorflow as tf

from gpflow_dwp.data import UCI_DATASETS, UCISplit, load_uci
from gpflow_dwp.evaluation import rmse
from gpflow_dwp.evaluation.provenance import describe_provenance
from gpflow_dwp.files import replacing
from gpflow_dwp.iterates import MixturePredictions
from gpflow_dwp.lab.exact_csv import read_exact_csv
from gpflow_dwp.models import VariationalModel
from gpflow_dwp.validation import check_choice

__all__ = [
    "Experiment",
    "OnSplit",
    "add_to_table",
    "mixture_scores",
    "provenance_here",
    "read_table",
    "summarise",
]


class Experiment(abc.ABC):
    """What is run at once: the settings, in a frozen dataclass, of one part of a table.

    :cvar key: Settings that are columns of the table, too: they tell the part from others.
    :cvar effort: Settings that must be the same wherever the key is, each with the column that
        tells it.
    :cvar is_counted: Whether they are how many values these columns have, or what they hold.
    :cvar groups: Columns whose values tell apart what is averaged.
    :cvar values: Columns that are averaged.
    """

    key: ClassVar[tuple[str, ...]] = ()
    effort: ClassVar[tuple[tuple[str, str], ...]] = (("trials", "trial"),)
    is_counted: ClassVar[bool] = True
    groups: ClassVar[tuple[str, ...]]
    values: ClassVar[tuple[str, ...]]

    @property
    def title(self) -> str:
        """The key in a few words."""
        return ", ".join(f"{name} {getattr(self, name)}" for name in self.key) or "the experiment"

    @abc.abstractmethod
    def check(self) -> None:
        """Refuse what would end the experiment later.

        :raises ValueError: If a setting cannot be used; the message names it.
        """

    @abc.abstractmethod
    def rows(self) -> Iterator[dict[str, Any]]:
        """Run it; return its results row by row."""

    def is_in(self, table: pd.DataFrame) -> bool:
        """Whether a table has the results.

        :raises ValueError: If it has those of another effort.
        """
        for name in self.key if len(table) else ():
            table = table[table[name] == getattr(self, name)]
        if not len(table):
            return False
        for setting, column in self.effort:
            held = int(table[column].nunique() if self.is_counted else table[column].iloc[0])
            if held != getattr(self, setting):
                raise ValueError(
                    f"--out holds {self.title} with --{setting} {held}, not "
                    f"{getattr(self, setting)}; choose another name."
                )
        return True


@dataclass(frozen=True)
class OnSplit(Experiment):
    """An experiment on one split of a UCI data set.

    :param dataset: Name of the data set.
    :param split: Number of the split.
    :param steps: Of training: of each model, or before iterates are collected.
    :param uci_folder: See :func:`gpflow_dwp.data.load_uci`.
    """

    dataset: str
    split: int
    steps: int
    uci_folder: Path | None = field(default=None, kw_only=True)

    key: ClassVar[tuple[str, ...]] = ("dataset", "split")
    is_counted = False
    groups: ClassVar[tuple[str, ...]] = ("dataset", "predictor")
    values: ClassVar[tuple[str, ...]] = ("test_log_likelihood", "rmse")

    def check(self) -> None:
        check_choice(UCI_DATASETS, dataset=self.dataset)
        self.load()

    def load(self) -> UCISplit:
        """Read the split."""
        return load_uci(self.dataset, self.split, folder=self.uci_folder)


def provenance_here(dtype: str) -> dict[str, Any]:
    """Describe software and machine of what runs in this process; 0 threads are as many as fit."""
    return describe_provenance(dtype, int(os.environ.get("TF_NUM_INTRAOP_THREADS", "0")))


def read_table(path: Path, kind: type[Experiment]) -> pd.DataFrame:
    """Return the results in a CSV file, none where there is no file.

    :raises ValueError: If it is no table, or that of another experiment.
    """
    try:
        table = read_exact_csv(path) if path.exists() else pd.DataFrame()
    except (OSError, ValueError) as error:
        raise ValueError(f"--out {path} cannot be read as a table: {error}") from error
    expected = {*kind.groups, *kind.values, *dict(kind.effort).values()}
    if len(table) and not expected <= {*table.columns}:
        raise ValueError(f"--out {path} holds another experiment; choose another name.")
    return table


def add_to_table(path: Path, table: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    """Run an experiment, add its results and their provenance to a table, and write it as CSV."""
    provenance = provenance_here("float64")
    versions = "; ".join(f"{name} {number}" for name, number in provenance.pop("versions").items())
    rows = pd.DataFrame(list(experiment.rows())).assign(**provenance, versions=versions)
    table = pd.concat([table, rows], ignore_index=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        table.to_csv(partial, index=False)
    return table


def summarise(table: pd.DataFrame, kind: type[Experiment]) -> pd.DataFrame:
    """Return means and standard errors of the results."""
    means = table.groupby([*kind.groups], sort=False)[[*kind.values]].agg(["mean", "sem"])
    return means.set_axis(["_".join(column) for column in means.columns], axis=1)


def mixture_scores(
    predictions: VariationalModel | MixturePredictions, data: UCISplit, **options: Any
) -> dict[str, float]:
    """Return test log-likelihood and RMSE, in raw units, of a mixture of draws.

    :param options: Numbers of draws.
    """
    X, Y = data.test
    mean, _ = predictions.predict_y(X, **options)
    density = predictions.predict_log_density((X, Y), **options)
    return {
        "test_log_likelihood": float(tf.reduce_mean(density)) + data.targets.log_density_offset,
        "rmse": rmse(data.Y_test, data.targets.inverse_transform(mean.numpy())),
    }
