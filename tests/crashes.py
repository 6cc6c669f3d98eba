"""Processes that are killed at the first, second, ... thing that they do to files."""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterator

_CHANGES = {"os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.copyfile"}
_KILLED = 17


def crashes(act: Callable[[], object], prepare: Callable[[], object]) -> Iterator[int]:
    """Prepare, and act in a process that is killed before one change of files; for each of them.

    :param act: What is done in a copy of this process.
    :param prepare: Makes what it is done to; called in this process.
    :return: Each change's number; what is left can be looked at then.
    """
    for number in itertools.count(1):
        prepare()
        if _run(act, number) != _KILLED:
            return
        yield number


def _run(act: Callable[[], object], number: int) -> int:
    """The exit code of a copy of this process that acts, and is killed at a change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of copies of processes with threads
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = number

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        writes = event == "open" and int(arguments[2]) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)  # type: ignore[call-overload]
        if event in _CHANGES or writes:
            left -= 1
            if not left:
                os._exit(_KILLED)

    try:
        sys.addaudithook(count)
        act()
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        os._exit(1)
