"""Help, exit codes, and the console script."""

from __future__ import annotations

import io
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run

from gpflow_dwp.cli import program

SCRIPT = Path(sys.executable).with_name("gpflow-dwp")


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    output = capsys.readouterr().out
    assert run() == 0 and capsys.readouterr().out == output
    assert re.search(r"^\W+fit +Train .*^\W+predict +Add ", output, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "arguments",
    [
        ["train"],
        ["fit", "--bogus"],
        ["fit", "a.csv", "b.csv"],
        ["predict"],
        ["export", "run"],
        ["predict", "run", "table.csv", "-o", "out.csv", "--num-samples", "0"],
    ],
)
def test_wrong_arguments_are_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    output, error = capsys.readouterr()
    assert output == "" and len(error.splitlines()) == 1
    assert re.match(r"gpflow-dwp.*: error: .*--help\)$", error)


def test_help_and_wrong_arguments_do_not_wait_for_tensorflow() -> None:
    program = """
import contextlib, io, sys
from gpflow_dwp.cli import main
for arguments in (
    *(["--help"], ["fit", "--help"], ["predict", "--help"], ["fit", "--width", "0"]),
):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(arguments)
heavy = {"tensorflow", "gpflow", "numpy", "pandas", "scipy", "sklearn"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_the_command_needs_is_named_where_it_is_missing() -> None:
    """Without the extra, the package is installed with the command's script."""
    program = """
import sys
sys.modules["cyclopts"] = None
from gpflow_dwp.cli import main
sys.exit(main(["fit", "--help"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    needed = 'cyclopts is needed here and is not installed: python -m pip install "gpflow-dwp[cli]"'
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"gpflow-dwp: error: {needed}\n"


def test_console_script_refuses_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [SCRIPT, "fit", "--width", "0"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("gpflow-dwp fit: error: --width: must be a positive integer up to ")
    assert list(tmp_path.iterdir()) == []


def test_output_has_escapes_for_what_its_encoding_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii"))
    monkeypatch.setattr(program, "check_outputs", lambda *_: print("größe €"))
    assert run("completion", "bash") == 0
    sys.stdout.flush()
    assert raw.getvalue().startswith(b"gr\\xf6\\xdfe \\u20ac\n")


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_traceback_is_shown_where_it_is_asked_for(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("gpflow_dwp.cli.info._versions", fail)
    assert run("info") == 1
    line = "gpflow-dwp info: ZeroDivisionError: ours (--debug shows where)"
    assert capsys.readouterr().err.splitlines() == [line]
    assert run(*(["--debug", "info"] if place == "first" else ["info", "--debug"])) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback") and "ours" in lines[-2] and lines[-1] == line


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_end_a_command_in_order(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tidied = []

    def wait() -> None:
        try:
            signal.raise_signal(signal.Signals[name])
        finally:
            tidied.append(name)

    monkeypatch.setattr("gpflow_dwp.cli.info._versions", wait)
    before = signal.signal(signal.Signals[name], signal.SIG_DFL)  # nohup has one of them ignored
    assert run("info") == 128 + signal.Signals[name]
    assert capsys.readouterr().err == f"gpflow-dwp info: ended by {name}, nothing was written\n"
    assert tidied == [name]
    assert signal.signal(signal.Signals[name], before) is signal.SIG_DFL


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_to_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [SCRIPT, "completion", "bash"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "gpflow-dwp completion: the disk is full\n")


def test_console_script_shows_help_in_less_than_a_second() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([SCRIPT, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("Usage: gpflow-dwp")
    assert done.stderr == ""
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Of the processor's time, since others may use the machine.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0
    assert re.search(r"exit codes:\s+0    done\s+1 ", done.stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("completion", shell) == 0
    script, error = capsys.readouterr()
    assert "evaluate" in script and "num-inducing" in script and error == ""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    run("completion", "bash")
    script = capsys.readouterr().out
    (function,) = set(re.findall(r"complete .*-F (\w+) gpflow-dwp", script))
    script += f"""
COMP_WORDS=(gpflow-dwp eva); COMP_CWORD=1; {function} gpflow-dwp eva gpflow-dwp
echo "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["evaluate"], done.stderr
