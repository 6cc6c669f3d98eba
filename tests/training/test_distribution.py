"""Training on two replicas leads where training on one device leads.

Two devices, and two processes, have to be there when TensorFlow starts: what is looked at comes
from ``replicas.py``.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from package_source import ROOT

RARER = {
    "single_rows_weighted_by_keras": 1e-9,
    "own_draws": 1e-10,
    "one_replica": 0.0,
    "compiled_by_xla": 1e-9,
    "natural_gradients": 1e-9,
}


# To read what GPflow says of shapes takes a third of its import.
PROGRAM = """
import check_shapes, runpy, sys
check_shapes.set_enable_check_shapes(check_shapes.ShapeCheckingState.DISABLED)
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", PROGRAM, str(ROOT / "tests" / "replicas.py")]
    program += [str(folder), *arguments]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(*processes: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """What each has found."""
    try:
        outputs = [process.communicate(timeout=500) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors
    return [json.loads(out.splitlines()[-1]) for out, _ in outputs]


REFUSED = {
    "model": "model must be built within the scope of the strategy, which was not so for ",
    "likelihood": "which was not so for .likelihood.variance.",
    "no strategy": "strategy must be that in whose scope the model was built, got None.",
    "strategy": "strategy must be a MirroredStrategy, MultiWorkerMirroredStrategy or One",
    "optimizer": "optimizer must be made within the scope of the strategy, which Adam was",
    "Keras": "optimizer must be made within the scope of the strategy, which Adam was not",
}


def test_two_replicas_end_where_one_device_does(tmp_path: Path) -> None:
    """Of 13 rows one replica has 6, one 7. Gradients that are summed twice, rows that count too
    much, a replica that steps by itself, or a place in the data that is lost would show. So would a
    step that is not finite and yet taken, and a likelihood from outside the scope, which was
    trained by both replicas at once, in silence."""
    (found,) = ended(start(tmp_path, "resumed", "not_finite", "refused"))
    assert found["resumed"] <= 1e-9
    message, moved, apart = found["not_finite"]
    assert message.startswith("NonFiniteBoundError: Training stopped at step 1: layers[0]")
    assert (moved, apart) == (0.0, 0.0)
    for attempt, message in REFUSED.items():
        assert found["refused"][attempt].startswith("ValueError: ")
        assert message in found["refused"][attempt]


@pytest.mark.slow
def test_replicas_of_rarer_ways_to_train(tmp_path: Path) -> None:
    """XLA would refuse variables of the other replica, and what replicas wait for. One replica is
    as good as none, to the bit. One seed for both, where each must have its own, would show."""
    (rarer,) = ended(start(tmp_path, *RARER))
    assert all(rarer[case] <= RARER[case] for case in RARER), rarer


@pytest.mark.slow
def test_two_processes_end_where_one_does(tmp_path: Path) -> None:
    """With minibatches, and a run that goes on from its checkpoint. A process that is ended alone,
    or has another folder, would wait for the other forever."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(2)]
        for each in sockets:
            each.bind(("localhost", 0))
        ports = [str(each.getsockname()[1]) for each in sockets]

    workers = ended(*(start(tmp_path, str(index), *ports) for index in range(2)))

    assert workers[0]["distance"] < 1e-9
    assert [seen["stop_reason"] for seen in workers] == ["interrupted after step 3"] * 2
    for seen, steps in zip(workers, (4, 0), strict=True):
        wanted = "ValueError: checkpoint_directory must be one folder that all processes see, got"
        assert seen["apart"].startswith(f"{wanted} one with {steps} steps here")
