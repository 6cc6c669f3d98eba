"""Ctrl-C that waits for the end of a compiled call."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

__all__ = ["deferred_interrupt"]


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a flag; a second one interrupts at once, as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    seen = False
    previous = signal.getsignal(signal.SIGINT)

    def handle(signum: int, frame: object) -> None:
        nonlocal seen
        seen = True
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: seen
    finally:
        signal.signal(signal.SIGINT, previous)
