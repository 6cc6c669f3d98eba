"""The command ``gpflow-dwp`` on small tables, in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
from cyclopts import Argument

from gpflow_dwp.cli import main
from gpflow_dwp.cli.program import COMMANDS, app
from gpflow_dwp.data import Standardiser, Table
from gpflow_dwp.data.table import read_to_split
from gpflow_dwp.models import DeepWishartProcess, load_model

TASKS = ("regression", "three classes")
TINY = ("--num-steps", "5", "--num-inducing", "8", "--depth", "1", "--quiet")
TEST_FRACTION = 0.25


def run(*arguments: object) -> int:
    """The command's exit code."""
    return main([str(argument) for argument in arguments])


def declared_options() -> Iterator[tuple[str, Argument]]:
    """Every option and argument of every command, after the command's name."""
    for name in COMMANDS:
        parts = {f"{name} {part}": app[name][part] for part in app[name] if part[0] != "-"}
        for command, part in (parts or {name: app[name]}).items():
            for option in part.assemble_argument_collection(parse_docstring=True):
                if not option.children:
                    yield command, option


def columns(task: str, rows: int = 40) -> dict[str, list[Any]]:
    """A table in which both inputs matter, in units far from standardised ones."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=rows), 1e3 + 50.0 * rng.normal(size=rows)
    signal = np.sin(2.0 * a) + 0.01 * (b - 1e3) + 0.1 * rng.normal(size=rows)
    targets: dict[str, tuple[str, list[Any]]] = {
        "regression": ("price", (100.0 + 20.0 * signal).tolist()),
        "three classes": (
            "label",
            np.array(["red", "green", "blue"])[np.digitize(signal, [-0.4, 0.4])].tolist(),
        ),
    }
    name, target = targets[task]
    return {"a": a.tolist(), "b": b.tolist(), name: target}


def write_csv(path: Path, table: Mapping[str, Sequence[object]]) -> Path:
    """Write columns as a CSV file."""
    pandas.DataFrame(table).to_csv(path, index=False)
    return path


def read_csv(path: Path) -> dict[str, list[str]]:
    """The columns of a CSV file, as text."""
    return pandas.read_csv(path, dtype=str, keep_default_na=False).to_dict("list")


def fit_options(task: str) -> list[str]:
    """What the command needs to know about one of the :data:`TASKS`."""
    options = [*TINY, "--test-fraction", str(TEST_FRACTION)]
    if task == "regression":
        return ["--target", "price", *options]
    return ["--target", "label", "--task", "classification", *options]


class TrainedRun(NamedTuple):
    """What ``gpflow-dwp fit`` left."""

    task: str
    table: Path
    directory: Path
    exit_code: int
    printed: str

    @property
    def metrics(self) -> dict[str, Any]:
        return json.loads((self.directory / "metrics.json").read_text())

    @property
    def description(self) -> dict[str, Any]:
        return json.loads((self.directory / "run.json").read_text())

    @property
    def deep_scores(self) -> dict[str, float]:
        return [*self.metrics["scores"].values()][-1]

    def model(self) -> DeepWishartProcess:
        return load_model(self.directory / "model")

    def rows(self) -> tuple[Table, Table]:
        """Training and test rows, in raw units."""
        description = self.description
        task = "regression" if description["classes"] is None else "classification"
        return read_to_split(self.table, description["target_name"], task).split(TEST_FRACTION, 0)[
            :2
        ]

    def standardised(self, table: Table) -> np.ndarray:
        return Standardiser.fit(self.rows()[0].X).transform(table.X)
