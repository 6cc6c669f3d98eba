"""A full disk is told in one line; what was there stays, and the same works once there is room."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import tensorflow as tf
from faults.cases import CASES, every_case, neither_old_nor_new
from faults.conftest import quick_commands, some
from faults.outcomes import Outcome, Tally
from faults.states import before_operations, plain, read_tree, restore

PART = "full disks"
IN_SHORT = 1
FULL = re.compile(r"disk is full|No space left on device")
# What needs no room.
_FREES = ("os.remove", "os.rmdir", "os.rename", "tensorflow.rename", "tensorflow.delete")


def judge(
    name: str, what: str, folder: Path, attempt: Callable[[Callable[[], Outcome]], Outcome]
) -> tuple[str, str]:
    """Try a case on a full disk, and then with room; the kind of what comes of it, and why."""
    case, tree = CASES[name], read_tree(folder)
    before = case.read()
    outcome = attempt(case.command)
    told = FULL.search(outcome.message) and len(outcome.message.strip().splitlines()) == 1
    found = case.read()
    again = (case.again or case.command)()
    after = case.read()
    restore(tree, folder)
    os.chdir(folder)
    if outcome.code != 0 and not told:
        return "traceback", f"{name}, {what}: {outcome}"
    if wrong := neither_old_nor_new(found, before, after if outcome.code != 0 else found):
        return "lost", f"{name}, {what}: {wrong}"
    if again.code != 0:
        return "lost", f"{name}, {what}: then with room {again}"
    return "refused" if outcome.code != 0 else "held", ""


@every_case
def test_no_room_from_some_operation_on(name: str, here: Path, tally: Tally, is_long: bool) -> None:
    """Stands in for a full disk: from one operation on, nothing can be made."""
    with quick_commands():
        CASES[name].prepare()
        tree, events = read_tree(here), list[str]()
        with before_operations(lambda event, _: events.append(event)):
            CASES[name].command()
        restore(tree, here)
        os.chdir(here)
        count = sum(not event.startswith(_FREES) for event in events)
        for number in some([*range(count)], is_long, IN_SHORT):
            kind, why = judge(name, f"operation {number}", here, partial(fail_from, number))
            tally.add(kind, why)
        assert plain(read_tree(here)) == plain(tree)


def fail_from(number: int, command: Callable[[], Outcome]) -> Outcome:
    """Run a command for which there is no room from an operation on."""
    count = -1

    def listen(event: str, path: str) -> None:
        nonlocal count
        if event.startswith(_FREES):
            return
        count += 1
        if count >= number and event.startswith("tensorflow."):
            raise tf.errors.ResourceExhaustedError(None, None, f"{path}; No space left on device")
        if count >= number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    with before_operations(listen):
        return command()
