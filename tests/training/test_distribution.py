"""Training on two replicas leads where training on one device leads.

Two devices, and two processes, have to be there when TensorFlow starts: what is looked at comes
from ``replicas.py`` and ``workers.py``.
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

REPLICAS, WORKERS = (str(ROOT / "tests" / name) for name in ("replicas.py", "workers.py"))

SAME = [
    "regression_on_minibatches",
    "weights_and_keras",
    "dataset_of_uneven_batches",
    "resumed",
]
"""Draws are those of one device."""

OWN_DRAWS = [
    "samples",
    "latent_gp_by_rows",
]
"""Replicas have draws of their own."""

OTHERS = [
    "one_replica",
    "optimisers_in_own_steps",
    "not_finite",
    "saved_and_exported",
    "refused",
    "second_strategy",
]


def run(folder: Path, *cases: str) -> dict[str, Any]:
    program = [sys.executable, REPLICAS, str(folder), *cases]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(2)]
        for each in sockets:
            each.bind(("localhost", 0))
        ports = [str(each.getsockname()[1]) for each in sockets]
    folder = str(tmp_path_factory.mktemp("workers"))
    processes = [
        subprocess.Popen(
            [sys.executable, WORKERS, folder, str(index), *ports],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    seen = []
    try:
        for process in processes:
            out, errors = process.communicate(timeout=500)
            assert process.returncode == 0, errors
            seen.append(json.loads(out.splitlines()[-1]))
    finally:
        for process in processes:
            process.kill()
    return seen


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("replicas"), *SAME, *OWN_DRAWS, *OTHERS)


@pytest.mark.parametrize("case", SAME)
def test_two_replicas_end_where_one_device_does(case: str, found: dict[str, Any]) -> None:
    """Of 13 rows one replica has 6, one 7. Gradients that are summed twice, rows that count too
    much, a replica that steps by itself, or a place in the data that is lost would show."""
    assert found[case] < 1e-9


@pytest.mark.slow
def test_replicas_of_rarer_ways_to_train(tmp_path: Path) -> None:
    """XLA would refuse variables of the other replica, and what replicas wait for."""
    rarer = run(tmp_path, "compiled_by_xla", "natural_gradients", "network_by_rows")
    assert max(rarer.values()) < 1e-9


@pytest.mark.parametrize("case", OWN_DRAWS)
def test_a_step_is_the_mean_of_two_with_seeds_of_their_own(
    case: str, found: dict[str, Any]
) -> None:
    """One seed for both, or copies of one datum on two replicas, would be another bound."""
    assert found[case] < 1e-10


def test_one_replica_is_as_good_as_none(found: dict[str, Any]) -> None:
    """To the bit, also where random numbers go by place."""
    assert found["one_replica"] == [0.0, 0.0]


def test_optimisers_sum_gradients_in_steps_of_the_user(found: dict[str, Any]) -> None:
    """Replicas that step by themselves are 0.09 apart after five steps, and nothing says so."""
    assert max(found["optimisers_in_own_steps"]) < 1e-12


def test_a_step_that_is_not_finite_is_not_taken_by_any_replica(found: dict[str, Any]) -> None:
    message, moved, apart = found["not_finite"]

    assert message.startswith("NonFiniteBoundError: Training stopped at step 1: layers[0]")
    assert (moved, apart) == (0.0, 0.0)


def test_what_replicas_have_learned_is_saved_and_exported(found: dict[str, Any]) -> None:
    """Within ``fit`` the strategy of the scope is taken, and a saved model loads into it."""
    assert max(found["saved_and_exported"]) < 1e-12


def test_a_second_strategy_is_told_what_to_do(found: dict[str, Any]) -> None:
    """TensorFlow says "Shape mismatch in the collective instance", deep below."""
    (told,) = found["second_strategy"]
    assert told.startswith("ValueError: strategy must be the only MirroredStrategy of this process")


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        ("model", "model must be built within the scope of the strategy, which was not so for "),
        ("likelihood", "which was not so for .likelihood.variance."),
        ("no strategy", "strategy must be that in whose scope the model was built, got None."),
        ("strategy", "strategy must be a MirroredStrategy, MultiWorkerMirroredStrategy or One"),
        ("split", "split must be one of rows, samples, got 'layers'."),
        ("split alone", "split must be 'rows' without a strategy, got 'samples'."),
        ("rows", "split must be 'samples' for this model, whose FreeEncoder has parameters of"),
        ("optimizer", "optimizer must be made within the scope of the strategy, which Adam was"),
        ("Keras", "optimizer must be made within the scope of the strategy, which Adam was not"),
        ("natural", "of the strategy, which NaturalGradientAdam was not."),
        ("legacy", "optimizer must be a Keras optimiser, an Adam or a NaturalGradientAdam, got "),
        ("own steps", "Adam, and what it changes, must be made within the scope of the Mirrored"),
        ("no replica", "Adam must take its steps within strategy.run, got a call outside."),
    ],
)
def test_what_replicas_would_do_wrong_is_refused(
    attempt: str, message: str, found: dict[str, Any]
) -> None:
    """A likelihood from outside the scope was trained by both replicas at once, in silence."""
    assert found["refused"][attempt].startswith("ValueError: ")
    assert message in found["refused"][attempt]


@pytest.mark.slow
def test_two_processes_end_where_one_does(workers: list[dict[str, Any]]) -> None:
    """With minibatches, and a run that is ended by a callback and goes on from its checkpoint."""
    assert workers[0]["distance"] < 1e-9


@pytest.mark.slow
def test_one_of_two_processes_writes(workers: list[dict[str, Any]]) -> None:
    """Two that save in one folder would take away each other's states."""
    for seen in workers:
        assert seen["saved"][0] == "checkpoint" and len(seen["saved"]) == 3
        assert seen["logs"] == ["log-0.csv"]


@pytest.mark.slow
def test_what_ends_one_process_ends_both(workers: list[dict[str, Any]]) -> None:
    """One that goes on would wait for the other forever."""
    assert [seen["interrupted"] for seen in workers] == ["interrupted after step 3"] * 2


@pytest.mark.slow
def test_processes_go_on_from_one_state(workers: list[dict[str, Any]]) -> None:
    """One that has another folder would begin anew, where the first goes on."""
    for seen, step in zip(workers, (4, 0), strict=True):
        assert seen["apart"][0].startswith("ValueError: checkpoint_directory must be one folder")
        assert seen["apart"][0].endswith(f"than in this one: {{'steps': {step}}}.")


@pytest.mark.slow
def test_processes_take_the_same_steps(workers: list[dict[str, Any]]) -> None:
    """Others would wait for each other, or take each other's gradients for their own."""
    for seen, size in zip(workers, (5, 6), strict=True):
        assert seen["different"][0].startswith("ValueError: fit must be called with the same arg")
        assert f"'batch_size': {size}" in seen["different"][0]
