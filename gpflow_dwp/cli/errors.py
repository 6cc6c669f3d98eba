"""What becomes of errors: the user's mistakes, as opposed to ours, and a line for each."""

from __future__ import annotations

import contextlib
import errno
import re
import signal
import sys
from collections.abc import Iterator

from cyclopts import CycloptsError

from gpflow_dwp.exceptions import NonFiniteBoundError, TableError

__all__ = ["TerminatedError", "UsageError", "explain", "spared", "user_mistakes"]

_FULL = re.compile(r"(?:([^\s;:]+)[;:] *)?(No space left on device|Disk quota exceeded)")
_HINTS = {"--model": " A Gaussian process is a DWP with --depth 1"}


class UsageError(Exception):
    """Something that the user gave cannot be used; shown as one line, with exit code 2."""


class TerminatedError(KeyboardInterrupt):
    """The process was asked to end, by a signal, of this number, that is not Ctrl-C's."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def user_mistakes() -> Iterator[None]:
    """Report errors of the kinds that bad input causes as a :class:`UsageError`."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        raise UsageError(_one_line(error)) from error


@contextlib.contextmanager
def spared(part: str) -> Iterator[None]:
    """Go on without a part of a run that is not worth a trained model; a line tells of it."""
    try:
        yield
    except Exception as error:  # of any kind: what has been trained is kept
        print(f"gpflow-dwp fit: warning: no {part}: {explain(error)[1]}", file=sys.stderr)


def explain(error: BaseException) -> tuple[int, str]:
    """Return the exit code that an error leads to, and the line that tells of it."""
    full = _full_disk(error)
    if full is not None:
        return 1, full
    if isinstance(error, CycloptsError):
        error.verbose = False
        program = " ".join(["gpflow-dwp", *(error.command_chain or ())])
        hint = _HINTS.get(error.argument.name, "") if error.argument else ""
        return 2, f"error: {_one_line(error).rstrip('.')}{hint} (see {program} --help)"
    if isinstance(error, UsageError):
        return 2, f"error: {_one_line(error)}"
    if isinstance(error, KeyboardInterrupt):
        kept = f"; {error.args[0]}" if error.args else ", nothing was written"
        if isinstance(error, TerminatedError):
            return 128 + error.number, f"ended by {signal.Signals(error.number).name}{kept}"
        return 128 + signal.SIGINT, f"interrupted{kept}"
    if isinstance(error, MemoryError) or _is_tensorflow(error, "ResourceExhaustedError"):
        return 1, (
            "out of memory; less is needed with a smaller --num-inducing or --num-samples, and for "
            "smaller tables"
        )
    if isinstance(error, (NonFiniteBoundError, OSError)):
        return 1, _one_line(error)
    return 1, f"{type(error).__name__}: {_one_line(error)} (--debug shows where)"


def _full_disk(error: BaseException | None) -> str | None:
    """What an error says of a full disk, if that was the cause of it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"the disk is full{f': {error.filename}' if error.filename else ''}"
        # TensorFlow says so by the kind of error that it has for too little memory, too.
        found = _FULL.search(str(error)) if _is_tensorflow(error, "OpError") else None
        if found:
            return f"the disk is full{f': {found[1]}' if found[1] else ''}"
        error = error.__cause__
    return None


def _is_tensorflow(error: BaseException, kind: str) -> bool:
    module = sys.modules.get("tensorflow")
    return module is not None and isinstance(error, getattr(module.errors, kind))


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        to = "" if error.filename2 is None else f" to {error.filename2}"
        return f"{error.filename}{to}: {error.strerror}"
    # A table's problems have a line each.
    is_table = isinstance(error, TableError) or isinstance(error.__cause__, TableError)
    lines = str(error).splitlines() if is_table else [str(error)]
    return "\n  ".join(" ".join(line.split()) for line in lines).strip() or type(error).__name__
