"""Signals that ask a process to end: taken as errors, or kept until a compiled call is over."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["deferred_signals", "ending_signals"]

# That of a terminal that closes is not everywhere.
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextlib.contextmanager
def deferred_signals(*, until_saved: bool) -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a flag; a second one interrupts at once, as usual.

    :param until_saved: Whether SIGTERM and SIGHUP are deferred, too. At the end of the context
        happens what they would have done at once. Where they are ignored, they stay so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    seen: list[int] = []
    previous = {}
    for number in (signal.SIGINT, *(_ENDING if until_saved else ())):
        handler = signal.getsignal(number)
        # None: of a library that is not Python's, which could not be put back.
        if handler is not None and (number == signal.SIGINT or handler != signal.SIG_IGN):
            previous[number] = handler

    def handle(number: int, frame: object) -> None:
        seen.append(number)
        signal.signal(number, previous[number])

    for number in previous:
        signal.signal(number, handle)
    try:
        yield lambda: bool(seen)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        for number in seen:
            if number != signal.SIGINT:
                signal.raise_signal(number)


@contextlib.contextmanager
def ending_signals(handle: Callable[[int, Any], Any]) -> Iterator[None]:
    """Let SIGTERM and SIGHUP be handled, so that nothing is left half done.

    Where they have a handler or are ignored, as after nohup, they are left as they are.

    :param handle: Called with the number of the signal and a frame; it raises.
    """
    is_main = threading.current_thread() is threading.main_thread()
    taken = [n for n in _ENDING if is_main and signal.getsignal(n) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
