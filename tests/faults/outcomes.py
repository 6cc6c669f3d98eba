"""What became of a call that something was wrong with, and how many came to what."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gpflow_dwp.cli import main

__all__ = ["Outcome", "Tally", "attempt", "command"]

KINDS = ("held", "refused", "fell back", "lost", "unclear", "silently wrong", "traceback")
WRONG = KINDS[3:]


class Outcome(NamedTuple):
    """What a command left.

    :param code: Its exit code; None for an exception that reached the caller, and for an end that
        is not told in one line.
    :param output: Of its standard output.
    :param message: Of its standard error, or the exception's.
    """

    code: int | None
    output: str
    message: str


def command(*arguments: object) -> Outcome:
    """Run ``gpflow-dwp`` in this process."""
    output, message = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(message),
        _noted_warnings() as warned,
    ):
        try:
            code: int | None = main([str(argument) for argument in arguments])
        except Exception as error:
            return Outcome(None, output.getvalue(), f"{type(error).__name__}: {error}"[:600])
    lines = [line for line in message.getvalue().splitlines() if line.strip()]
    told = bool(lines) and all(line.startswith("gpflow-dwp") for line in lines)
    said = "\n".join([*lines, *warned()])
    return Outcome(code if code == 0 or told else None, output.getvalue(), said)


def attempt(call: Callable[[], Any], *refusals: type[Exception]) -> Outcome:
    """Call a function, which may refuse by errors of some types; their text is the message."""
    with _noted_warnings() as warned:
        try:
            return Outcome(0, repr(call()), "\n".join(warned()))
        except refusals as error:
            return Outcome(2 if str(error).strip() else None, "", str(error))
        except Exception as error:
            return Outcome(None, "", f"{type(error).__name__}: {error}"[:600])


@contextlib.contextmanager
def _noted_warnings() -> Iterator[Callable[[], list[str]]]:
    """Let the user be warned, as in a process that is no test's; what was said is returned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield lambda: [str(warning.message) for warning in caught]


class Tally:
    """Counts outcomes by part of the campaign, and keeps what is wrong until the part's test ends.

    :param counts: Of all parts.
    :param part: The one that is counted here.
    """

    def __init__(self, counts: defaultdict[str, Counter[str]], part: str) -> None:
        self._counts, self._part, self._wrong = counts, part, list[str]()

    def add(self, kind: str, what: str) -> None:
        """Count a case."""
        assert kind in KINDS
        self._counts[self._part][kind] += 1
        if kind in WRONG:
            self._wrong.append(f"{kind}: {what}")

    def add_refusal(self, outcome: Outcome, piece: str, what: str) -> None:
        """Count a case that has to be refused with a message that holds a pattern."""
        told = re.search(piece, outcome.message)
        kinds = {None: "traceback", 2: "refused" if told else "unclear"}
        kind = kinds.get(outcome.code, "silently wrong")
        self.add(kind, f"{what}: {outcome.code} {outcome.message[:300]!r}, not {piece!r}")

    def check(self) -> None:
        """Fail with all that is wrong."""
        assert not self._wrong, f"{len(self._wrong)} wrong:\n" + "\n".join(self._wrong)


def write_summary(path: Path, counts: defaultdict[str, Counter[str]]) -> None:
    """Put parts into a file of summaries, beside those of other parts."""
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        summary = json.loads(file.read() or "{}")
        for part, count in counts.items():
            summary[part] = {"cases": count.total(), **{kind: count[kind] for kind in KINDS}}
        file.truncate(0)
        json.dump(dict(sorted(summary.items())), file, indent=1)
