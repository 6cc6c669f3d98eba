"""What a user may get wrong ends in one line, and what the help shows works as it stands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import columns, run, write_csv

from gpflow_dwp.cli.program import COMMANDS, app, parse

EXAMPLES = [
    line.strip()
    for name in COMMANDS
    for line in app[name].help.splitlines()
    if line.startswith("    ") and "gpflow-dwp " in line
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_help_are_understood(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unfinished = {"runs/houses-1": "{}", "runs/houses-1.unfinished": "{}"}
    for folder, text in {**unfinished, "studies/full": "datasets: [yacht]"}.items():
        Path(folder).mkdir(parents=True)
        Path(folder, "config.yaml").write_text(text)
    example = example.removeprefix('eval "$(').replace(')" ', " ")
    arguments = shlex.split(example.partition(">")[0], comments=True)[1:]

    function, _ = parse(arguments)
    assert function.__module__.startswith("gpflow_dwp.cli.")


@pytest.mark.parametrize(
    "arguments",
    [
        "fit t.csv --config c.yaml --categorical a --categorical b",
    ],
)
def test_of_lists_that_come_twice_none_is_dropped(
    arguments: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments.split()) == 2

    message = r"error: Parameter --[a-z]+ specified multiple times \(see gpflow-dwp [a-z ]+ --help"
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"completion"}))
def test_every_command_with_a_result_gives_it_to_programs(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(name, "--help") == 0
    assert re.search(r"--json .* +Print the result as one line", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [[i, i, 1e305 * i] for i in range(12)],
            r"table.csv: values from .* to .* \(column 'y'\) are too large",
        ),
        ([[i, 1e-320 * i, i] for i in range(12)], "from .* to .* are too large or too close"),
    ],
)
def test_tables_of_no_use(
    refused: Callable[..., str], tmp_path: Path, rows: list[list[float]], message: str
) -> None:
    values = dict(zip("aby", map(list, zip(*rows, strict=True)), strict=True))
    table = write_csv(tmp_path / "table.csv", values)

    assert re.search(message, refused("fit", table, "--target", "y"))


def test_fractions_that_leave_no_training_rows(refused: Callable[..., str], tmp_path: Path) -> None:
    table = write_csv(tmp_path / "table.csv", columns("regression"))

    for option, named in (
        ("--test-fraction", "test_fraction"),
        ("--validation-fraction", "--validation-fraction"),
    ):
        message = refused("fit", table, "--target", "price", option, "0.999")
        assert re.search(rf": {named} 0.999 of \d+ rows is .*: none is left for training", message)
    (tmp_path / "taken").write_text("")
    refused("fit", table, "--target", "price", "--out", "taken/run")


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "--num-samples", "2000000000"],
        ["predict", "run", "table.csv", "-o", "x.csv", "--num-samples", "99999999999"],
    ],
)
def test_sizes_that_fit_in_no_machine(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    (message,) = capsys.readouterr().err.splitlines()
    assert "must be a positive integer up to 1000000" in message
