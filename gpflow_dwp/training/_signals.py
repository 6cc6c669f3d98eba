"""Signals that ask a process to end, kept until a compiled call is over."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

__all__ = ["deferred_signals"]

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
