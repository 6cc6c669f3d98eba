"""Commands and functions that end at any of their file operations lose nothing.

At every operation, and in the middle of every writing, the state of the folder is what a process
would leave that ends there. From each, what the user had can be read with its old or its new
content, the same command succeeds, and leaves what it would have left without all this.
"""

from __future__ import annotations

import os
from pathlib import Path

from faults.cases import CASES, every_case, names_in, neither_old_nor_new
from faults.conftest import quick_commands, some
from faults.outcomes import Outcome, Tally
from faults.states import record_states, restore

PART = "crash points"
STATES_IN_SHORT = 2


@every_case
def test_a_process_that_ends_anywhere_loses_nothing(
    name: str, here: Path, tally: Tally, is_long: bool
) -> None:
    case, first = CASES[name], list[Outcome]()
    with quick_commands():
        case.prepare()
        before = case.read()
        states = record_states(here, lambda: first.append(case.command()))
        assert first[0].code == 0, first
        after, left = case.read(), names_in(here)
        expected = None if case.result is None else case.result(first[0])

        for number, state in enumerate(some(states, is_long, STATES_IN_SHORT)):
            restore(state.tree, here)
            os.chdir(here)
            found = case.read()
            wrong = neither_old_nor_new(found, before, after)
            if not wrong:
                outcome = (case.again or case.command)()
                found = case.read()
                other = sorted(names_in(here) ^ left)
                if outcome.code != 0:
                    wrong = f"then the same: {outcome}"
                elif found.code != after.code:
                    wrong = f"then the same, but: {found}"
                elif case.result is not None and case.result(outcome) != expected:
                    wrong = "then the same, with another result"
                elif other:
                    wrong = f"other files are there: {other}"
            kind = "traceback" if found.code is None else "lost"
            tally.add(kind if wrong else "held", f"{name}, state {number}, {state.moment}: {wrong}")
