"""Where commands may write, and that every option for that goes through the gate."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from command_line import content, declared_options, run

from gpflow_dwp.cli.errors import UsageError
from gpflow_dwp.cli.outputs import OUTPUTS, check_outputs
from gpflow_dwp.cli.program import options_by_name, parse

READ = ("run", "table", "config", "resume")


@pytest.fixture(autouse=True)
def _runs_and_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with a model, another run, a study, an export, and links to them."""
    monkeypatch.chdir(tmp_path)
    for folder in ("run/model", "other", "study", "export"):
        Path(folder).mkdir(parents=True)
    for folder in ("run", "other"):
        Path(folder, "run.json").write_text(json.dumps({"format": "gpflow_dwp.run"}))
    Path("run/model/model.zip").touch()
    for name in ("study/study.lock", "export/saved_model.pb", "t.csv"):
        Path(name).touch()
    Path("c.yaml").write_text("{}")
    Path("link").symlink_to("run", target_is_directory=True)
    Path("link.csv").symlink_to("run/run.json")
    Path("hard.csv").hardlink_to("t.csv")


def check(command: str) -> None:
    arguments = shlex.split(command)
    _, bound = parse(arguments)
    check_outputs(arguments[0], options_by_name(bound))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        *(
            (f"predict run t.csv --overwrite -o {place}", what)
            for place, what in {
                "run/run.json": "run, which holds a run",
                "run/new.csv": "run, which holds a run",
                "run/figures/../x.csv": "run, which holds a run",
                "other/x.csv": "other, which holds a run",
                "link/x.csv": "run, which holds a run",
                "link.csv": "run, which holds a run",
                "run/model/x.csv": "which holds a",
                "export/x.csv": "export, which holds an exported model",
                "t.csv": "t.csv is the table that is read",
                "run/../t.csv": "t.csv is the table that is read",
                "hard.csv": "hard.csv is the table that is read",
                "/dev/null": "/dev/null is there already, and no file",
                "t.csv/x.csv": "t.csv/x.csv cannot be written: Not a directory",
            }.items()
        ),
        ("export run -o run", "--out run is within .*run, which holds a run"),
        ("fit t.csv --out run/inner", "which holds a run"),
        ("fit t.csv --out run --overwrite --log other/log.csv", "other, which holds a run"),
        ("fit --config c.yaml --log c.yaml", "--log c.yaml is that of config"),
        ("fit t.csv --log x --out x", "--log x is in the directory of the run"),
        ("fit t.csv --out x --log x/log.csv", "--log x/log.csv is in the directory of the run, x"),
    ],
)
def test_places_that_are_refused(command: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check(command)


@pytest.mark.parametrize(
    "command",
    [
        "predict run t.csv -o new.csv",
        "fit t.csv --out run --overwrite --log log.csv",
        "fit t.csv --out new/run --log new/deep/log.csv",
        "export run -o new",
        "info run",
    ],
)
def test_places_that_are_taken(command: str) -> None:
    before = content(Path())
    check(command)
    assert content(Path()) == before


def test_a_command_is_refused_before_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("predict", "run", "t.csv", "-o", "run/run.json", "--overwrite") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("gpflow-dwp predict: error: --out run/run.json is within ")


def test_every_option_that_names_a_file_is_known() -> None:
    named = {
        option.field_info.name for _, option in declared_options() if "Path" in str(option.hint)
    }
    assert named == {*READ, *OUTPUTS}
