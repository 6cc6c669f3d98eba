"""A full disk is told in one line; what was there stays, and the same works once there is room."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import tensorflow as tf
from command_line import columns, write_csv
from faults.cases import CASES, every_case, is_another_run, neither_old_nor_new
from faults.conftest import quick_commands, some
from faults.outcomes import Outcome, Tally
from faults.states import before_operations, plain, read_tree, restore

PART = "full disks"
IN_SHORT = 1
KIBIBYTES_LEFT = (0, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
FULL = re.compile(r"disk is full|No space left on device")
# What needs no room.
_FREES = ("os.remove", "os.rmdir", "os.rename", "tensorflow.rename", "tensorflow.delete")


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of one mebibyte, where one can be mounted; it is the current folder."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    folder = disk / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_csv(folder / "table.csv", columns("regression", 12))
    yield folder
    monkeypatch.undo()
    subprocess.run(["umount", str(disk)], check=True)


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
    is_new = is_another_run(found, before)  # it was written before there was no room to tidy up
    new = after if outcome.code != 0 else found
    if not is_new and (wrong := neither_old_nor_new(found, before, new)):
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


@pytest.mark.slow
@every_case
def test_a_disk_that_is_full(name: str, small_disk: Path, tally: Tally) -> None:
    def with_little_room(command: Callable[[], Outcome]) -> Outcome:
        status = os.statvfs(small_disk)
        ballast = small_disk.parent / "ballast"
        with ballast.open("wb") as file:
            taken = status.f_bavail * status.f_bsize - 1024 * kibibytes
            if taken > 0:
                os.posix_fallocate(file.fileno(), 0, taken)
        try:
            return command()
        finally:
            ballast.unlink()

    with quick_commands():
        CASES[name].prepare()
        for kibibytes in KIBIBYTES_LEFT:
            kind, why = judge(name, f"{kibibytes} KiB left", small_disk, with_little_room)
            tally.add(kind, why)
