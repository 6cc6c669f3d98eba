"""What ends at any of its operations on files, or finds no room for one, loses nothing.

At every operation, and in the middle of every writing, the state of the folder is what a process
would leave that ends there. From each, what the user had can be read with its old or its new
content, the same command succeeds, and leaves what it would have left without all this.
"""

from __future__ import annotations

import errno
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tensorflow as tf
from faults.conftest import FIT, Outcome, attempt, begin_run, command, finish_run
from faults.states import before_operations, read_tree, record_states, restore
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit
from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.iterates import parameter_vector
from gpflow_dwp.models import load_model, save_model
from gpflow_dwp.training import Callback, TrainingProgress

IN_SHORT = 1
# Numbers of processes and hashes, which differ from one time to the next.
_VARYING = re.compile(r"[0-9a-f]{8,}|\d+")
_FULL = re.compile(r"disk is full|No space left on device")
# What needs no room.
_FREES = ("os.remove", "os.rmdir", "os.rename", "tensorflow.rename", "tensorflow.delete")
NOTHING = Outcome(2, "", "none")


class Case(NamedTuple):
    """A command, and what the user would miss.

    :param prepare: Makes what the user has before.
    :param command: What may end at any moment; an outcome with code 0.
    :param read: What the user has: an outcome, of code 0 where there is anything.
    :param again: What the user does afterwards; None for the same command.
    :param result: What comes of it, which is the same as without an end; None for what differs from
        one time to the next.
    """

    prepare: Callable[[], object]
    command: Callable[[], Outcome]
    read: Callable[[], Outcome]
    again: Callable[[], Outcome] | None = None
    result: Callable[[], str] | None = None


def digests(*paths: Path) -> str:
    """Of files, those that are missing among them."""
    return str([path.is_file() and hash(path.read_bytes()) for path in paths])


def read_run() -> Outcome:
    """A run as ``info`` and the files tell."""
    outcome = command("info", "run", "--json")
    if '"scores"' not in outcome.output:  # no run, or one that is not finished
        return Outcome(2, "", outcome.message if outcome.code else "unfinished")
    names = ("options.json", "run.json", "metrics.json", "history.csv", "model/model.zip")
    files = digests(*(Path("run") / name for name in names))
    return outcome._replace(output=outcome.output + files)


def fit_run() -> Outcome:
    return command("fit", *FIT, "--out", "run")


def resume() -> Outcome:
    return command("fit", "--resume", "run", "--quiet")


def resume_or_finished() -> Outcome:
    outcome = resume()
    is_finished = outcome.code == 2 and "no run that could go on" in outcome.message
    return read_run() if is_finished else outcome


def fit_on() -> Outcome:
    """What is told to a user who runs the same command again."""
    outcome = fit_run()
    if outcome.code == 2 and "is there already" in outcome.message:
        return read_run()
    is_begun = outcome.code == 2 and "holds an unfinished run" in outcome.message
    return resume_or_finished() if is_begun else outcome


def predict() -> Outcome:
    outcome = command("predict", "run", "table.csv", "-o", "p.csv", "--num-samples", "1")
    is_there = outcome.code == 2 and "is there already" in outcome.message
    return read_predictions() if is_there else outcome


def read_predictions() -> Outcome:
    return Outcome(0, Path("p.csv").read_text(), "") if Path("p.csv").exists() else NOTHING


def predictions() -> str:
    """Of the run."""
    Path("../p.csv").unlink(missing_ok=True)
    assert command("predict", "run", "table.csv", "-o", "../p.csv").code == 0
    return Path("../p.csv").read_text()


def read_export() -> Outcome:
    """Which of its files are there, and the columns."""
    if not Path("program/saved_model.pb").exists():
        return NOTHING
    digest = digests(Path("program/assets.extra/columns.json"))
    return Outcome(0, f"{sorted(names_in(Path('program')))} {digest}", "")


def export_run() -> Outcome:
    outcome = command("export", "run", "-o", "program", "--num-samples", "1")
    is_there = outcome.code == 2 and "holds a run or a model" in outcome.message
    return read_export() if is_there else outcome


def save_tiny(variance: float) -> Outcome:
    model = tiny_model(1)
    model.likelihood.variance.assign(variance)
    return attempt(lambda: save_model(model, "saved"))


def read_saved() -> Outcome:
    return attempt(lambda: float(load_model("saved").likelihood.variance.numpy()), SavedModelError)


def train(*also: Callback) -> Outcome:
    """Take three steps; all bounds and parameters."""

    def run() -> list[float]:
        model = tiny_model(1)
        with warnings.catch_warnings():  # of a save that is half there, and the one before it
            warnings.filterwarnings("ignore", message=".*is damaged, and left out")
            saves = {"checkpoint_directory": "state", "seconds_between_checkpoints": 0.0}
            saves |= {"callbacks": [*also], "callback_interval": 1}
            history = fit(model, toy_data(), 3, progress=False, **saves)
        return [*history.elbo.tolist(), *parameter_vector(model).tolist()]

    return attempt(run, ValueError, BlockingIOError)


def half_trained() -> None:
    """A run of three steps that was cut off after the second, with the state of the first."""

    def cut(progress: TrainingProgress) -> None:
        if progress.step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(cut)


CASES = {
    "fit --out": Case(lambda: None, fit_run, read_run, fit_on, predictions),
    "fit --resume": Case(begin_run, resume, read_run, resume_or_finished, predictions),
    "predict --out": Case(finish_run, predict, read_predictions),
    "export": Case(finish_run, export_run, read_export),
    "save_model": Case(lambda: save_tiny(1.0), lambda: save_tiny(2.0), read_saved),
    "fit(checkpoint_directory)": Case(half_trained, train, lambda: NOTHING),
}


def names_in(folder: Path) -> set[str]:
    """Of files, without what varies in them; what TensorFlow keeps of a state is its own."""
    names = (name for name in read_tree(folder) if not name.startswith(("run/state", "state/")))
    return {_VARYING.sub("*", name) for name in names}


def is_old_or_new(found: Outcome, before: Outcome, after: Outcome) -> bool:
    """Whether what can be read is one of both; nothing may be there only if nothing was."""
    if found.code == before.code == 2:
        return found.output in (before.output, after.output)
    return found[:2] in (before[:2], after[:2])


@pytest.mark.parametrize(
    "case",
    [
        # Of what trains several times, `tests/cli/test_resume.py` has one case in short runs.
        pytest.param(case, id=name, marks=[pytest.mark.slow] * (name == "fit --resume"))
        for name, case in CASES.items()
    ],
)
@pytest.mark.usefixtures("quick")
def test_a_process_that_ends_anywhere_loses_nothing(case: Case, here: Path, some: Any) -> None:
    wrong, first = [], list[Outcome]()
    case.prepare()
    before = case.read()
    states = record_states(here, lambda: first.append(case.command()))
    assert first[0].code == 0, first
    after, left = case.read(), names_in(here)
    expected = None if case.result is None else case.result()
    for moment, tree in some(states, IN_SHORT):
        restore(tree, here)
        if not is_old_or_new(found := case.read(), before, after):
            wrong.append(f"{moment}: read {found}, which is neither {before} nor {after}")
            continue
        outcome = (case.again or case.command)()
        if outcome.code != 0 or (found := case.read()).code != after.code:
            wrong.append(f"{moment}, then the same: {outcome}, {found}")
        elif case.result is not None and case.result() != expected:
            wrong.append(f"{moment}, then the same, with another result")
        elif other := names_in(here) ^ left:
            wrong.append(f"{moment}, other files are there: {other}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["fit --out", "predict --out", "save_model"])
@pytest.mark.usefixtures("quick")
def test_a_full_disk_is_told_and_loses_nothing(name: str, here: Path, some: Any) -> None:
    """In one line, where nothing can be made from some operation on; with room, it works again."""
    case = CASES[name]
    case.prepare()
    tree, before, events = read_tree(here), case.read(), list[str]()
    with before_operations(lambda event, _: events.append(event)):
        case.command()
    count = sum(not event.startswith(_FREES) for event in events)
    for number in some([*range(count)], IN_SHORT):
        restore(tree, here)
        outcome = with_no_room_from(number, case.command)
        found = case.read()
        again = (case.again or case.command)()
        after = case.read()
        told = _FULL.search(outcome.message) and len(outcome.message.strip().splitlines()) == 1
        assert outcome.code == 0 or told, (number, outcome)
        assert outcome.code == 0 or is_old_or_new(found, before, after), (number, found)
        assert again.code == 0, (number, again)


def with_no_room_from(number: int, command: Callable[[], Outcome]) -> Outcome:
    """Run a command for which there is no room from an operation on."""
    count = -1

    def listen(event: str, path: str) -> None:
        nonlocal count
        if event.startswith(_FREES):
            return
        count += 1
        if count >= number and event.startswith("tensorflow."):
            raise tf.errors.ResourceExhaustedError(None, None, f"{path}; No space left on device")
        if count >= number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    with before_operations(listen):
        return command()
