"""Help, exit codes, the console script, options in a file, and a line for every error."""

from __future__ import annotations

import errno
import re
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import tensorflow as tf
from command_line import declared_options, run
from cyclopts import CycloptsError

from gpflow_dwp.cli import program
from gpflow_dwp.cli.errors import TerminatedError, UsageError, explain, user_mistakes
from gpflow_dwp.cli.program import COMMANDS, app
from gpflow_dwp.exceptions import NonFiniteBoundError

SCRIPT = Path(sys.executable).with_name("gpflow-dwp")


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a command without a line, or a bare command that says nothing."""
    assert run("--help") == 0
    output = capsys.readouterr().out
    assert run() == 0 and capsys.readouterr().out == output
    assert re.search(r"^\W+fit +Train .*^\W+predict +Add ", output, re.DOTALL | re.MULTILINE)


def test_every_option_is_explained() -> None:
    """Would catch an option that the help names only."""
    options = [*declared_options()]
    assert len(options) > 40
    for command, option in options:
        assert option.parameter.help, f"{command} {option.name}"


EXAMPLES = [
    line.strip()
    for name in COMMANDS
    for line in app[name].help.splitlines()
    if line.startswith("    ") and "gpflow-dwp " in line
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_help_are_understood(example: str) -> None:
    """Would catch an example with an option that is gone."""
    example = example.removeprefix('eval "$(').replace(')" ', " ")
    arguments = shlex.split(example.partition(">")[0], comments=True)[1:]
    function, _ = program.parse(arguments)
    assert function.__module__.startswith("gpflow_dwp.cli.")


@pytest.mark.parametrize(
    "arguments",
    [
        "train",
        "fit --bogus",
        "fit a.csv b.csv",
        "fit --seed 1 --seed 2",
        "predict",
        "export run",
        "predict run table.csv -o out.csv --num-samples 0",
    ],
)
def test_wrong_arguments_are_one_line(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a traceback, or a page of help in place of the mistake."""
    assert run(*arguments.split()) == 2
    output, error = capsys.readouterr()
    assert output == "" and len(error.splitlines()) == 1
    assert re.match(r"gpflow-dwp.*: error: .*--help\)$", error)


def in_a_process(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_help_and_mistakes_do_not_wait_for_tensorflow() -> None:
    """Would catch an import by which a mistake takes many seconds to tell."""
    done = in_a_process("""
import contextlib, io, sys
from gpflow_dwp.cli import fit, main, options
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    for arguments in ("--help", "fit --help", "predict --help", "fit --num-steps 0", "info"):
        main(arguments.split())
    heavy = {"tensorflow", "gpflow", "pandas", "scipy", "sklearn"} & {*sys.modules}
    main("fit absent.csv --target y".split())
    heavy |= {"tensorflow", "gpflow"} & {*sys.modules}
assert not heavy, heavy
""")
    assert done.returncode == 0, done.stderr


def test_what_the_command_needs_is_named_where_it_is_missing() -> None:
    """Without the extra, the package is installed with the command's script."""
    done = in_a_process("""
import sys
sys.modules["cyclopts"] = None
from gpflow_dwp.cli import main
sys.exit(main(["fit", "--help"]))
""")
    needed = 'cyclopts is needed here and is not installed: python -m pip install "gpflow-dwp[cli]"'
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"gpflow-dwp: error: {needed}\n"


def test_console_script_shows_help_in_less_than_a_second() -> None:
    """Of the processor's time, since others may use the machine."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([SCRIPT, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("Usage: gpflow-dwp")
    assert done.stderr == "" and re.search(r"exit codes:\s+0    done\s+1 ", done.stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


def test_a_traceback_is_shown_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a fault of ours that cannot be looked into."""
    fail = Mock(side_effect=ZeroDivisionError("ours"))
    monkeypatch.setattr("gpflow_dwp.cli.commands.list_versions", fail)
    assert run("info") == 1
    line = "gpflow-dwp info: ZeroDivisionError: ours (--debug shows where)"
    assert capsys.readouterr().err.splitlines() == [line]
    assert run("info", "--debug") == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback") and "ours" in lines[-2] and lines[-1] == line


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_end_a_command_in_order(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a process that is ended without what is due in between."""
    tidied = []

    def wait() -> None:
        try:
            signal.raise_signal(signal.Signals[name])
        finally:
            tidied.append(name)

    monkeypatch.setattr("gpflow_dwp.cli.commands.list_versions", wait)
    before = signal.signal(signal.Signals[name], signal.SIG_DFL)  # nohup has one of them ignored
    assert run("info") == 128 + signal.Signals[name]
    assert capsys.readouterr().err == f"gpflow-dwp info: ended by {name}, nothing was written\n"
    assert tidied == [name]
    assert signal.signal(signal.Signals[name], before) is signal.SIG_DFL


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_shells_complete(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a script that does not know the commands or the options."""
    assert run("completion", shell) == 0
    script, error = capsys.readouterr()
    assert "evaluate" in script and "num-inducing" in script and error == ""


FULL = OSError(errno.ENOSPC, "No space left on device", "run/x.npz")
FULL_TENSORFLOW = tf.errors.ResourceExhaustedError(None, None, "a/b.tmp; No space left on device")


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UsageError("no\nfile"), 2, "error: no file"),
        (NonFiniteBoundError("Training stopped.", step=3), 1, "Training stopped."),
        (MemoryError(), 1, "out of memory; .*"),
        (tf.errors.ResourceExhaustedError(None, None, "OOM"), 1, "out of memory; .*"),
        (FULL, 1, "the disk is full: run/x.npz"),
        (FULL_TENSORFLOW, 1, "the disk is full: a/b.tmp"),
        (tf.errors.UnknownError(None, None, "No space left on device"), 1, "the disk is full"),
        (PermissionError(errno.EACCES, "Permission denied", "x"), 1, "x: Permission denied"),
        (OSError(errno.EXDEV, "Other device", "a", None, "b"), 1, "a to b: Other device"),
        (KeyboardInterrupt(), 130, "interrupted, nothing was written"),
        (TerminatedError(signal.SIGTERM), 143, "ended by SIGTERM, nothing was written"),
        (KeyError("name"), 1, r"KeyError: 'name' \(--debug shows where\)"),
        (CycloptsError(msg="is wrong."), 2, r"error: is wrong \(see gpflow-dwp --help\)"),
    ],
)
def test_every_error_is_a_line(error: BaseException, code: int, line: str) -> None:
    """Would catch a mistake of the user's that is told as ours, or the other way round."""
    found = explain(error)
    assert found[0] == code
    assert re.fullmatch(line, found[1])


def test_bad_input_is_a_mistake_and_all_else_is_ours() -> None:
    """Would catch a fault of ours that is told as the user's."""
    for error in (ValueError("a bad model"), FileNotFoundError("no file"), ImportError("pandas")):
        with pytest.raises(UsageError, match=str(error)), user_mistakes():
            raise error
    for ours in (TypeError("ours"), KeyboardInterrupt(), UsageError("named")):
        with pytest.raises(type(ours)) as caught, user_mistakes():
            raise ours
        assert caught.value is ours
    with pytest.raises(UsageError) as caught, user_mistakes():
        raise FULL
    assert explain(caught.value) == (1, "the disk is full: run/x.npz")
