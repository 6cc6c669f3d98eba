"""A table that experiments are added to, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gpflow_dwp.lab.experiments.experiment import Experiment, add_to_table, read_table, summarise


@dataclass(frozen=True)
class Squares(Experiment):
    """Powers of trials."""

    power: int
    trials: int

    key = ("power",)
    groups = ("power",)
    values = ("result",)

    def check(self) -> None:
        """Nothing."""

    def rows(self) -> Iterator[dict[str, Any]]:
        for trial in range(self.trials):
            yield {"power": self.power, "trial": trial, "result": float(trial**self.power)}


def test_a_table_holds_what_was_added(tmp_path: Path) -> None:
    path = tmp_path / "new" / "table.csv"
    table = read_table(path, Squares)
    assert not Squares(1, 3).is_in(table)

    for power in (1, 2):
        table = add_to_table(path, table, Squares(power, 3))
    read = read_table(path, Squares)

    pd.testing.assert_frame_equal(read[["power", "trial", "result"]], table.iloc[:, :3])
    assert {"versions", "commit", "machine", "date", "dtype", "threads"} <= {*read.columns}
    assert Squares(1, 3).is_in(read) and Squares(2, 3).is_in(read) and not Squares(3, 3).is_in(read)
    with pytest.raises(ValueError, match="holds power 2 with --trials 3, not 4; choose another"):
        Squares(2, 4).is_in(read)
    means = summarise(read, Squares)
    assert list(means.columns) == ["result_mean", "result_sem"]
    assert list(means["result_mean"]) == pytest.approx([1.0, 5.0 / 3.0])


def test_other_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("power,trial\n1,2\n")
    with pytest.raises(ValueError, match="holds another experiment; choose another name"):
        read_table(path, Squares)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="cannot be read as a table"):
        read_table(path, Squares)
