"""A training that is killed at a random moment ends, when it goes on, bit for bit as without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path

from faults.outcomes import Tally

PART = "kills"
KILLS, KILLS_IN_SHORT = 100, 1
KINDS = (
    "1 regression stopping",
    "3 pseudo_targets minibatches",
    "3 regression",
    "1 pseudo_targets minibatches stopping",
    "3 regression stopping",
    "1 pseudo_targets",
)
TESTS = Path(__file__).resolve().parents[1]
ONE_THREAD = dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1")


def test_what_was_killed_goes_on_bit_for_bit(tally: Tally, is_long: bool) -> None:
    kinds = [*islice(cycle(KINDS), KILLS if is_long else KILLS_IN_SHORT)]
    process = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("zygote.py")), json.dumps(kinds)],
        stdout=subprocess.PIPE,
        env=os.environ | ONE_THREAD | {"PYTHONPATH": f"{TESTS}:{TESTS.parent}"},
        check=True,
    )
    ends = [json.loads(line) for line in process.stdout.splitlines()]
    assert [end["kind"] for end in ends] == kinds
    for end in ends:
        tally.add("lost" if end["differ"] else "held", str(end))
    print("went on after steps", sorted(end["step"] for end in ends))
