"""Which errors are the user's, and what is said of each."""

from __future__ import annotations

import errno
import re
import signal

import pytest
import tensorflow as tf
from cyclopts import CycloptsError

from gpflow_dwp.cli.errors import TerminatedError, UsageError, explain, user_mistakes
from gpflow_dwp.exceptions import NonFiniteBoundError, SavedModelError, TableError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("a bad value"), "a bad value"),
        (TableError("a bad table"), "a bad table"),
        (SavedModelError("a bad model"), "a bad model"),
        (FileNotFoundError("no file"), "no file"),
        (FileNotFoundError(errno.ENOENT, "No such file", "runs/1"), "runs/1: No such file"),
        (OSError(errno.EXDEV, "Other device", "a", None, "b"), "a to b: Other device"),
        (ImportError("pandas is needed"), "pandas is needed"),
    ],
)
def test_bad_input_is_a_mistake(error: Exception, said: str) -> None:
    with pytest.raises(UsageError) as caught, user_mistakes():
        raise error
    assert caught.value.__cause__ is error
    assert str(caught.value) == said


@pytest.mark.parametrize("error", [TypeError("ours"), KeyboardInterrupt(), ZeroDivisionError()])
def test_everything_else_is_ours(error: BaseException) -> None:
    with pytest.raises(type(error)), user_mistakes():
        raise error


def test_a_mistake_that_is_named_already_stays_as_it_is() -> None:
    mistake = UsageError("named")
    with pytest.raises(UsageError) as caught, user_mistakes():
        raise mistake
    assert caught.value is mistake


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
        (KeyboardInterrupt(), 130, "interrupted, nothing was written"),
        (TerminatedError(signal.SIGTERM), 143, "ended by SIGTERM, nothing was written"),
        (KeyError("name"), 1, r"KeyError: 'name' \(--debug shows where\)"),
        (AssertionError(), 1, r"AssertionError: AssertionError \(--debug .*"),
        (CycloptsError(msg="is wrong."), 2, r"error: is wrong \(see gpflow-dwp --help\)"),
        (CycloptsError(msg="fit, ..."), 2, r"error: fit, \.\.\. \(see gpflow-dwp --help\)"),
    ],
)
def test_every_error_is_a_line(error: BaseException, code: int, line: str) -> None:
    found = explain(error)
    assert found[0] == code
    assert re.fullmatch(line, found[1])


def test_a_full_disk_is_no_mistake_of_the_users() -> None:
    with pytest.raises(UsageError) as caught, user_mistakes():
        raise FULL
    assert explain(caught.value) == (1, "the disk is full: run/x.npz")
