"""Commands and functions that write: what the user has before, and how it is read afterwards."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from faults.conftest import FEW, FIT, begin_run, finish_run
from faults.outcomes import Outcome, attempt, command
from faults.states import read_tree
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit
from gpflow_dwp.cli.run_directory import Run
from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.iterates import SWAG, MultiSWAG, parameter_vector
from gpflow_dwp.models import load_model, save_model
from gpflow_dwp.training import Callback, CSVLog, TrainingProgress

# Numbers of processes and hashes, which differ from one time to the next.
_VARYING = re.compile(r"[0-9a-f]{8,}|\d+")


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
    result: Callable[[Outcome], str] | None = None


def digests(*paths: Path) -> str:
    """Of files, those that are missing among them."""
    texts = [path.read_bytes() if path.is_file() else b"none" for path in paths]
    return " ".join(hashlib.sha256(text).hexdigest()[:12] for text in texts)


def read_run() -> Outcome:
    """A run as ``info`` and the files tell."""
    outcome = command("info", "run", "--json")
    if '"scores"' not in outcome.output:  # no run, or one that is not finished
        return Outcome(2, "", outcome.message if outcome.code else "unfinished")
    names = ("config.yaml", "run.json", "metrics.json", "history.csv", "model/model.json")
    files = digests(*(Run(Path("run")).folder / name for name in names))
    output = re.sub(r'"can_go_on": \w+', "", outcome.output)
    return outcome._replace(output=output + files)


def fit_run(*options: object) -> Outcome:
    return command("fit", *FIT, *FEW, "--out", "run", *options)


def fit_or_resume() -> Outcome:
    """As the message of the first says."""
    outcome = fit_run()
    if outcome.code == 2 and "unfinished" in outcome.message:
        return command("fit", "--resume", "run", "--quiet")
    if outcome.code == 2 and "holds another run" in outcome.message:
        return read_run()
    return outcome


def resume_or_finished() -> Outcome:
    outcome = command("fit", "--resume", "run", "--quiet")
    if outcome.code == 2 and "no run that could go on" in outcome.message:
        return read_run()
    return outcome


def finished_run() -> None:
    finish_run("--seed", "1")


def read_file(name: str) -> Callable[[], Outcome]:
    def read() -> Outcome:
        path = Path(name)
        return Outcome(0, path.read_text(), "") if path.exists() else Outcome(2, "", "none")

    return read


def predict_run(*options: object) -> Outcome:
    return command("predict", "run", "table.csv", "-o", "p.csv", "--num-samples", "1", *options)


def read_export() -> Outcome:
    """Which of its files are there, and the columns."""
    if not Path("program/saved_model.pb").exists():
        return Outcome(2, "", "none")
    columns = Path("program/assets.extra/columns.json")
    return Outcome(0, f"{sorted(names_in(Path('program')))} {digests(columns)}", "")


def export_run() -> Outcome:
    outcome = command("export", "run", "-o", "program", "--num-samples", "1")
    if outcome.code == 2 and "holds an exported model" in outcome.message:
        return read_export()
    return outcome


def save_tiny(variance: float) -> Outcome:
    model = tiny_model(1)
    model.likelihood.variance.assign(variance)
    return attempt(lambda: save_model(model, "saved"))


def read_saved() -> Outcome:
    return attempt(lambda: float(load_model("saved").likelihood.variance.numpy()), SavedModelError)


def swags(value: float) -> MultiSWAG:
    """Two members that have collected iterates around a value."""
    models = [tiny_model(1) for _ in range(2)]
    members = [SWAG(model, rank=2) for model in models]
    for member in members:
        for step in range(3):
            member._num_collected += 1
            member._observe(np.full(parameter_vector(models[0]).shape, value + step))
    return MultiSWAG(members)


def read_swags() -> Outcome:
    posterior = swags(0.0)

    def means() -> list[float]:
        posterior.load("iterates")
        return [float(member.distribution().mean[0]) for member in posterior.members]

    return attempt(means, SavedModelError)


def predictions(_: Outcome) -> str:
    """Of the run."""
    assert command("predict", "run", "table.csv", "-o", "../p.csv", "--overwrite").code == 0
    return Path("../p.csv").read_text()


def train(*also: Callback) -> Outcome:
    """Take three steps with a log; all bounds and parameters."""

    def run() -> list[float]:
        model = tiny_model(1)
        history = fit(
            model,
            toy_data(),
            3,
            progress=False,
            callbacks=[CSVLog("log.csv"), *also],
            callback_interval=1,
            checkpoint_directory="state",
            seconds_between_checkpoints=0.0,
        )
        steps = [int(line.split(",")[0]) for line in Path("log.csv").read_text().split()[1:]]
        assert steps == [1, 2, 3]
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
    "fit": Case(lambda: None, fit_run, read_run, fit_or_resume, predictions),
    "fit --overwrite": Case(
        finished_run, lambda: fit_run("--overwrite"), read_run, result=predictions
    ),
    "fit --overwrite of an unfinished run": Case(
        lambda: begin_run("--seed", "1", "--out", "run"),
        lambda: fit_run("--overwrite"),
        read_run,
        result=predictions,
    ),
    "fit --resume": Case(
        lambda: begin_run("--log", "log.csv", "--out", "run"),
        lambda: command("fit", "--resume", "run", "--quiet"),
        read_run,
        resume_or_finished,
        predictions,
    ),
    "predict": Case(
        finish_run, predict_run, read_file("p.csv"), lambda: predict_run("--overwrite")
    ),
    "predict --overwrite": Case(
        lambda: (finish_run(), Path("p.csv").write_text("old")),
        lambda: predict_run("--overwrite"),
        read_file("p.csv"),
    ),
    "export": Case(finish_run, export_run, read_export),
    "save_model": Case(lambda: None, lambda: save_tiny(2.0), read_saved),
    "save_model over another": Case(lambda: save_tiny(1.0), lambda: save_tiny(2.0), read_saved),
    "iterates' save": Case(
        lambda: None, lambda: attempt(lambda: swags(2.0).save("iterates")), read_swags
    ),
    "iterates' save over another": Case(
        lambda: swags(1.0).save("iterates"),
        lambda: attempt(lambda: swags(2.0).save("iterates")),
        read_swags,
    ),
    "fit(checkpoint_directory)": Case(lambda: None, train, lambda: Outcome(2, "", "")),
    "fit(checkpoint_directory) that goes on": Case(half_trained, train, lambda: Outcome(2, "", "")),
}


# What begins with nothing is among what begins with something; short runs leave it to the tests of
# the functions that write.
_ONLY_IN_LONG = {
    *("fit", "fit --overwrite of an unfinished run", "predict", "save_model"),
    *("iterates' save", "fit(checkpoint_directory)"),
}
every_case = pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in _ONLY_IN_LONG else n for n in CASES],
)


def names_in(folder: Path) -> set[str]:
    """Of files, without what varies in them; steps of a finished run may be left."""
    names = (name for name in read_tree(folder) if not name.startswith("run/state"))
    return {_VARYING.sub("*", name) for name in names}


def neither_old_nor_new(found: Outcome, before: Outcome, after: Outcome) -> str:
    """What is wrong with what can be read: it must be old or new, and nothing only as before."""
    if found.code == 2 and before.code == 2:
        return "" if found.output in (before.output, after.output) else f"{found}"
    if found[:2] in (before[:2], after[:2]):
        return ""
    return f"read {found}, which is neither {before} nor {after}"
