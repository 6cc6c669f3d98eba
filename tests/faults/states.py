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
from typing import Any

import pytest
from tensorflow.python.lib.io import file_io

from gpflow_dwp import validation

Tree = dict[str, bytes | str | None]
"""What is below a folder, by path: files (bytes), links (text) and folders (None)."""

Listener = Callable[[str, str], None]
_CHANGES = {
    *("os.rename", "os.remove", "os.mkdir", "os.rmdir"),
    *("os.link", "os.symlink", "os.truncate"),
}
# TensorFlow's own, which no audit hook sees.
_OF_TENSORFLOW = (
    *("write_string_to_file", "rename_v2", "delete_file_v2", "delete_recursively_v2"),
    *("create_dir_v2", "recursive_create_dir_v2", "copy_v2"),
)
_listener: Listener | None = None


def read_tree(folder: Path) -> Tree:
    """All below a folder."""
    tree: Tree = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            tree[name] = str(path.readlink())
        elif path.is_dir():
            tree[name] = None
        else:
            tree[name] = path.read_bytes()
    return tree


def restore(tree: Tree, folder: Path) -> None:
    """Make a folder, which may be the current one, hold a tree and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, entry in tree.items():
        path = folder / name
        if entry is None:
            path.mkdir()
        elif isinstance(entry, str):
            path.symlink_to(entry)
        else:
            path.write_bytes(entry)
    if folder.is_absolute():
        os.chdir(folder)


def record_states(folder: Path, command: Callable[[], Any]) -> list[tuple[str, Tree]]:
    """Run a command, and return each different state that it leaves on its way, the last included.
    Of a file that is written between two operations, there are also the states in which it is empty
    or half there. The process that seems to have done it is dead."""
    states: list[tuple[str, Tree]] = []
    last = read_tree(folder)

    def listen(event: str, name: str) -> None:
        nonlocal last
        now = read_tree(folder)
        for found in (*_torn(last, now), now):
            if not any(found == state for _, state in states[-3:]):
                states.append((f"{event} {name}", found))
        last = now

    with as_dead_process(), before_operations(listen):
        command()
    listen("end", "")
    return states


def each_end(act: Callable[[], object], folder: Path) -> Iterator[str]:
    """Act, and leave a folder as it would be if the process had ended at each of its moments."""
    for moment, tree in record_states(folder, act):
        restore(tree, folder)
        yield moment


def _torn(before: Tree, after: Tree) -> Iterator[Tree]:
    """The states between two, in which a file has been written in part."""
    for name, content in after.items():
        if isinstance(content, bytes) and content and content not in before.values():
            old = before.get(name)
            start = len(old) if isinstance(old, bytes) and content.startswith(old) else 0
            for size in {start, (start + len(content)) // 2}:
                yield {**after, name: content[:size]}


@contextlib.contextmanager
def before_operations(listener: Listener) -> Iterator[None]:
    """Have a function called before every operation that changes files, with its name and path. The
    function's own operations are passed over. If it raises, the operation is not done."""
    global _listener

    def with_event(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def announced(*arguments: Any, **keywords: Any) -> Any:
            _hook(f"tensorflow.{name}", arguments)
            return function(*arguments, **keywords)

        return announced

    with pytest.MonkeyPatch.context() as patch:
        for name in _OF_TENSORFLOW:
            patch.setattr(file_io, name, with_event(name, getattr(file_io, name)))
        _listener = listener
        try:
            yield
        finally:
            _listener = None


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
def as_dead_process() -> Iterator[None]:
    """Let this process have the number of one that has ended: what it leaves has no owner."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: ended.pid)
        patch.setitem(validation._processes, "first", ended.pid)  # not forked
        yield
