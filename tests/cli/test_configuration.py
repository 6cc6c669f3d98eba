"""Options in a file, and that a run is repeated from what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import columns, fit_options, parse, run, write_csv

from gpflow_dwp.cli import program
from gpflow_dwp.cli.configuration import write_configuration


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_back(*arguments: str) -> dict[str, Any]:
    """What the options of a command are once more, from the file that it writes."""
    _, bound = program.parse(arguments)
    write_configuration(Path("config.yaml"), arguments[0], bound.arguments["options"])
    needed = () if arguments[0] == "fit" else ("--out", "there")
    return parse(arguments[0], "--config", "config.yaml", *needed)


def write(fields: dict[str, Any], name: str = "my.yaml") -> str:
    Path(name).write_text(json.dumps(fields) if name.endswith("json") else yaml.safe_dump(fields))
    return name


@pytest.mark.parametrize("name", ["my.yaml", "my.json"])
def test_a_file_stands_for_options(name: str) -> None:
    fields = {"table": "my houses.csv", "target": "the price", "num-steps": 7, "whiten": True}
    fields |= {"kernel": None, "overwrite": False, "test_fraction": 0.25}

    options = parse("fit", "--config", write(fields, name))

    expected = parse(
        *("fit", "my houses.csv", "--target", "the price", "--num-steps", "7", "--whiten"),
        *("--test-fraction", "0.25"),
    )
    assert options == expected | {"config": Path(name)}


def test_the_command_line_goes_before_the_file() -> None:
    path = write({"table": "a.csv", "num_steps": 7, "seed": 3})

    options = parse("fit", "--num-steps", "8", "b.csv", "--config", path)

    assert (options["table"], options["num_steps"], options["seed"]) == (Path("b.csv"), 8, 3)


def test_lists_end_where_the_file_ends() -> None:
    path = write({"table": "a.csv", "categorical": ["town", "style"]})

    options = parse("fit", "--config", path, "b.csv", "--seed", "1")

    assert (options["table"], options["categorical"]) == (Path("b.csv"), ("town", "style"))


def test_names_that_look_like_options_are_names() -> None:
    path = write({"table": "a.csv", "categorical": ["-x", "town", "--seed"], "target": "-y"})

    options = parse("fit", "--config", path, "--seed", "1")

    assert (options["categorical"], options["target"]) == (("-x", "town", "--seed"), "-y")
    assert options["seed"] == 1
    assert parse("fit", "--categorical", "b", "--config", path)["categorical"] == ("b",)


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit"],
        ["fit", "a.csv", "--target", "b: c", "--whiten", "--posterior", "A", "--seed", "4"],
        ["fit", "--model", "DGP", "--whiten"],
        ["fit", "--model", "VMG", "--hidden-units", "7", "--num-pseudo-data", "1"],
        ["fit", "--num-steps", "5", "--log", "log.csv", "--validation-fraction", "0.3"],
        ["fit", "--config", "other.yaml"],
    ],
)
def test_what_a_run_writes_is_read_back(arguments: list[str]) -> None:
    write({"drop": ["a", "b"], "depth": 2}, "other.yaml")
    options = parse(*arguments, "--quiet", "--out", "there")

    again = write_back(*arguments, "--quiet", "--out", "there")

    for name in ("table", "log"):
        if options[name] is not None:
            options[name] = options[name].resolve()
    elsewhere = {"out": None, "quiet": False, "config": Path("config.yaml")}
    assert again == options | elsewhere


@pytest.mark.usefixtures("untrained")
def test_a_run_is_repeated_from_its_directory() -> None:
    write_csv(Path("table.csv"), columns("two classes"))
    options = [*fit_options("two classes"), "--width", "3"]

    assert run("fit", "table.csv", *options, "--out", "first") == 0
    assert run("fit", "--config", "first/config.yaml", "--out", "second") == 0

    first, second = (json.loads(Path(name, "run.json").read_text()) for name in ("first", "second"))
    for description in (first, second):
        for name in ("out", "config", "table", "quiet"):
            del description["options"][name]
        del description["sha256"]
    assert first == second


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "num_step: 3",
            "has an option 'num_step', which gpflow-dwp fit has not; did you mean 'num_",
        ),
        ("depth: 2\ndepth: 3", "has the option 'depth' twice"),
        ("width: 2\nhidden-units: 3", "has the option 'hidden_units' twice"),
        ("seed: 2020-13-45", "is neither YAML nor JSON"),
        ("depth: " + "[" * 3000, "is neither YAML nor JSON"),
        ("- 3", "must hold options by name"),
        ("a: [", "is neither YAML nor JSON"),
        ("num_steps: 0", "--num-steps: must be a positive integer, got '0'"),
        ("num_steps: true", "--num-steps: must be a positive integer, got 'True'"),
        ("target: [a, b]", "my.yaml: 'target' must be one value, got ['a', 'b']"),
        ("resume: run", "has an option 'resume', which gpflow-dwp fit has not"),
        ("model: GP", 'Invalid value "GP" for --model from my.yaml. Choose from: "DWP"'),
    ],
)
def test_refuses_what_is_no_configuration(
    text: str, message: str, refused: Callable[..., str]
) -> None:
    Path("my.yaml").write_text(text)
    assert message in refused("fit", "--config", "my.yaml")


def test_refuses_a_file_that_is_missing(refused: Callable[..., str]) -> None:
    assert "my.yaml" in refused("fit", "--config", "my.yaml")
