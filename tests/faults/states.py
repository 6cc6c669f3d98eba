"""Every state in which a process could leave a folder, if it ended while it is at work there."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tensorflow.python.lib.io import file_io

_CHANGES = {
    *("os.rename", "os.remove", "os.mkdir", "os.rmdir"),
    *("os.link", "os.symlink", "os.truncate"),
}
Listener = Callable[[str, str], None]
# TensorFlow's own, which no audit hook sees.
_OF_TENSORFLOW = (
    *("write_string_to_file", "rename_v2", "delete_file_v2", "delete_recursively_v2"),
    *("create_dir_v2", "recursive_create_dir_v2", "copy_v2"),
)
_listener: Listener | None = None


class Entry(NamedTuple):
    """A file (bytes), a link (text) or a folder (None)."""

    content: bytes | str | None
    inode: int
    modified: int


Tree = dict[str, Entry]


class State(NamedTuple):
    """What a process leaves that ends at a moment.

    :param moment: The operation that it was about to do, or in the middle of.
    :param tree: By path.
    """

    moment: str
    tree: Tree


def read_tree(folder: Path, known: Tree | None = None) -> Tree:
    """All below a folder; what has not changed is taken from an earlier reading."""
    tree: Tree = {}
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            name, status = str(path.relative_to(folder)), path.lstat()
            old = (known or {}).get(name)
            key = (status.st_ino, status.st_mtime_ns)
            if path.is_symlink():
                content: bytes | str | None = str(path.readlink())
            elif path.is_dir():
                content = None
            elif old is not None and old[1:] == key and len(old.content or b"") == status.st_size:
                content = old.content
            else:
                content = path.read_bytes()
            tree[name] = Entry(content, *key)
    return tree


def restore(tree: Tree, folder: Path) -> None:
    """Make a folder hold a tree and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, entry in tree.items():
        path = folder / name
        if entry.content is None:
            path.mkdir()
        elif isinstance(entry.content, str):
            path.symlink_to(entry.content)
        else:
            path.write_bytes(entry.content)
            os.utime(path, ns=(entry.modified, entry.modified))


def plain(tree: Tree) -> dict[str, bytes | str | None]:
    """Names and contents only."""
    return {name: entry.content for name, entry in tree.items()}


def record_states(folder: Path, command: Callable[[], Any]) -> list[State]:
    """Run a command, and return each different state that it leaves on its way, the last included.

    Of what is written between two operations, there are also the states in which a file is empty or
    half there, in the order of writing. The process that seems to have done it is dead.
    """
    states: list[State] = []
    last: Tree = read_tree(folder)

    def add(moment: str, tree: Tree) -> None:
        if not any(plain(tree) == plain(state.tree) for state in states[-3:]):
            states.append(State(moment, tree))

    def listen(event: str, name: str) -> None:
        nonlocal last
        now = read_tree(folder, last)
        for torn in _torn(last, now):
            add(f"writing, before {event} {name}", torn)
        add(f"{event} {name}", now)
        last = now

    with as_dead_process(), before_operations(listen):
        command()
    listen("end", "")
    return states


@contextlib.contextmanager
def before_operations(listener: Listener) -> Iterator[None]:
    """Have a function called before every operation that changes files, with its name and path.

    The function's own operations are passed over. If it raises, the operation is not done.
    """
    global _listener
    with _events_of_tensorflow():
        _listener = listener
        try:
            yield
        finally:
            _listener = None


def _torn(before: Tree, after: Tree) -> Iterator[Tree]:
    """The states between two, by which files were written bit by bit."""
    inodes = {(entry.inode, entry.content) for entry in before.values()}
    written = sorted(
        (entry.modified, name)
        for name, entry in after.items()
        if isinstance(entry.content, bytes)
        and entry.content
        and (entry.inode, entry.content) not in inodes
    )
    whole = {name for name in after if name not in {name for _, name in written}}
    for _, name in written:
        content = after[name].content
        old = before[name].content if name in before else b""
        assert isinstance(content, bytes)
        start = len(old) if isinstance(old, bytes) and content.startswith(old) else 0
        for size in {start, (start + len(content)) // 2}:
            tree = {path: entry for path, entry in after.items() if path in whole}
            yield {**tree, name: after[name]._replace(content=content[:size])}
        whole.add(name)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    global _listener
    listener = _listener
    if listener is None:
        return
    if event == "open":
        _, mode, flags = arguments
        writes = set(mode) & set("wax+") if mode else flags & (os.O_WRONLY | os.O_RDWR)
        if not writes:
            return
    elif event not in _CHANGES and not event.startswith("tensorflow."):
        return
    _listener = None
    try:
        listener(event, str(arguments[0]))
    finally:
        _listener = listener


sys.addaudithook(_hook)


@contextlib.contextmanager
def _events_of_tensorflow() -> Iterator[None]:
    def with_event(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def announced(*arguments: Any, **keywords: Any) -> Any:
            _hook(f"tensorflow.{name}", arguments)
            return function(*arguments, **keywords)

        return announced

    with pytest.MonkeyPatch.context() as patch:
        for name in _OF_TENSORFLOW:
            patch.setattr(file_io, name, with_event(name, getattr(file_io, name)))
        yield


@contextlib.contextmanager
def as_dead_process() -> Iterator[None]:
    """Let this process have the number of one that has ended: what it leaves has no owner."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: ended.pid)
        yield
