"""Two processes in one place: one is refused in one line, or both end, and what is there is whole.

At an operation of the first process on files, the second runs from its start to its end. It is this
process in truth, under another number: locks do not know the difference. A second that would wait
for the first is taken to do so.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from faults.cases import CASES, every_case
from faults.conftest import quick_commands, some
from faults.outcomes import Outcome, Tally
from faults.states import before_operations, read_tree, restore

PART = "two processes"
IN_SHORT = 1


class _Waits(BaseException):
    """The second process waits for the first."""


@contextmanager
def second_process() -> Iterator[None]:
    original = fcntl.flock

    def flock(file: Any, way: int) -> None:
        try:
            original(file, way | fcntl.LOCK_NB)
        except BlockingIOError:
            if way & fcntl.LOCK_NB:
                raise
            raise _Waits from None

    number = os.getppid()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: number)
        patch.setattr(fcntl, "flock", flock)
        yield


def during(command: Callable[[], Outcome], number: int) -> list[Outcome]:
    """Run a command twice: the second time before an operation of the first."""
    count, outcomes = -1, list[Outcome]()

    def listen(*_: Any) -> None:
        nonlocal count
        count += 1
        if count == number:
            try:
                with second_process():
                    outcomes.append(command())
            except _Waits:
                outcomes.append(Outcome(0, "", "waits"))

    with before_operations(listen):
        return [command(), *outcomes]


@every_case
def test_two_processes_in_one_place(name: str, here: Path, tally: Tally, is_long: bool) -> None:
    case = CASES[name]
    with quick_commands():
        case.prepare()
        tree, events = read_tree(here), list[str]()
        with before_operations(lambda event, path: events.append(f"{event} {path}")):
            assert case.command().code == 0
        for number in some([*range(len(events))], is_long, IN_SHORT):
            restore(tree, here)
            os.chdir(here)
            outcomes = during(case.command, number)
            found = case.read()
            codes = [outcome.code for outcome in outcomes]
            told = [outcome.message[:200] for outcome in outcomes if outcome.code != 0]
            what = f"{name}, at {number} of {len(events)}, {events[number]}: {codes} {told}"
            if not {*codes} <= {0, 1, 2}:
                tally.add("traceback", what)
            elif 0 not in codes or (found.code != 0 and not name.startswith("fit(")):
                tally.add("lost", f"{what}, {found}")
            else:
                tally.add("refused" if told else "held", what)
