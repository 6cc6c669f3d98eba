"""A damaged file is refused in one line, or nothing is other than it was."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import columns, write_csv
from faults.conftest import begin_run, finish_run, quick_commands
from faults.outcomes import Outcome, Tally, attempt, command
from faults.states import Tree, read_tree, restore
from model_reference import tiny_model

from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.iterates import SWAG, parameter_vector
from gpflow_dwp.models import load_model, model_from_bytes, model_to_bytes, save_model
from gpflow_dwp.training.loop import CompiledLoop

PART = "damaged files"
CASES_OF_FILE, CASES_IN_SHORT = 32, 2
# What no command reads back.
UNREAD = ("figures", "history.csv", "config.yaml")


def predict(name: str) -> Outcome:
    """Predictions of a run, and what is known of it."""
    out = Path("../predictions.csv")
    out.unlink(missing_ok=True)
    done = command("predict", name, "table.csv", "-o", out, "--num-samples", "1")
    known = command("info", name, "--json")
    if done.code or known.code:
        return done if done.code != 0 else known
    return known._replace(
        output=known.output + out.read_text(), message=done.message + known.message
    )


def resume() -> Outcome:
    """Predictions of a run that goes on, and how many calls of its loop that took."""
    calls: list[int] = []
    original = CompiledLoop.run

    def run(loop: CompiledLoop, size: int) -> Any:
        calls.append(size)
        return original(loop, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledLoop, "run", run)
        outcome = command("fit", "--resume", "going", "--quiet")
    if outcome.code != 0:
        return outcome
    out = Path("../predictions.csv")
    command("predict", "going", "table.csv", "-o", out, "--num-samples", "1", "--overwrite")
    text = out.read_text()
    return outcome._replace(output=f"{sum(calls)} steps {text}")


def tiny_swag() -> SWAG:
    return SWAG(tiny_model(1), rank=2)


def read_iterates() -> Outcome:
    swag = tiny_swag()

    def load() -> tuple[Any, ...]:
        swag.load("iterates")
        model = swag.distribution()
        return tuple(np.asarray(part).tolist() for part in (model.mean, model.covariance()))

    return attempt(load, SavedModelError)


def read_saved() -> Outcome:
    model: list[Any] = []
    outcome = attempt(lambda: model.append(load_model("saved")), SavedModelError)
    return outcome if outcome.code != 0 else outcome._replace(output=model_to_bytes(model[0]).hex())


def read_bytes() -> Outcome:
    path = Path("bytes/model.zip")
    content = path.read_bytes() if path.exists() else b""
    return attempt(lambda: model_to_bytes(model_from_bytes(content)).hex(), SavedModelError)


READERS: dict[str, Callable[[], Outcome]] = {
    "run": lambda: predict("run"),
    "going.unfinished": resume,
    "iterates": read_iterates,
    "saved": read_saved,
    "bytes": read_bytes,
}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Tree]]:
    """A folder with one of each, and how it was at first."""
    folder, before = tmp_path_factory.mktemp("damaged") / "here", Path.cwd()
    folder.mkdir()
    os.chdir(folder)
    write_csv(folder / "table.csv", columns("regression", 12))
    with quick_commands():
        finish_run()
        begin_run("--out", "going")
        swag = tiny_swag()
        for step in range(3):
            swag._num_collected += 1
            swag._observe(np.full(parameter_vector(swag.model).shape, 1.0 + step))
        swag.save("iterates")
        model = tiny_model(2)
        save_model(model, "saved")
        Path("bytes").mkdir()
        Path("bytes/model.zip").write_bytes(model_to_bytes(model))
        yield folder, read_tree(folder)
    os.chdir(before)


def damage(content: bytes, rng: np.random.Generator) -> tuple[str, bytes | None]:
    """A kind of damage, and what is left; None for no file."""
    kinds = ("bit", "bit", "digit", "digit", "cut", "empty", "gone", "zeros", "more")
    kind = str(rng.choice(kinds))
    digits = [i for i, byte in enumerate(content) if chr(byte) in "0123456789"]
    place = (
        int(rng.choice(digits)) if kind == "digit" and digits else int(rng.integers(len(content)))
    )
    start, end, byte = content[:place], content[place + 1 :], content[place]
    if kind == "digit" and digits:
        other = (byte - ord("0") + int(rng.integers(1, 10))) % 10
        return f"digit {place}", start + str(other).encode() + end
    if kind in ("bit", "digit"):
        return f"bit {place}", start + bytes([byte ^ (1 << int(rng.integers(8)))]) + end
    left = {"cut": start, "empty": b"", "gone": None, "more": content + content[:place]}
    return f"{kind} {place}", left.get(kind, start + bytes(16) + content[place + 16 :])


def judge(outcome: Outcome, expected: Outcome, folder: str) -> str:
    """Which kind an outcome is of."""
    if outcome.code != 0:
        return "traceback" if outcome.code is None else "refused"
    if outcome.output == expected.output:
        return "held"
    return "fell back" if folder in outcome.message else "silently wrong"


@pytest.mark.parametrize("top", READERS)
def test_damage_is_refused_or_makes_no_difference(
    top: str, everything: tuple[Path, Tree], tally: Tally, is_long: bool
) -> None:
    folder, tree = everything
    expected = READERS[top]()
    assert expected.code == 0, expected
    names = [
        name
        for name, entry in tree.items()
        if name.startswith(f"{top}/")
        and isinstance(entry.content, bytes)
        and not any(part in name for part in UNREAD)
    ]
    assert names
    for name in names:
        rng = np.random.default_rng(list(name.encode()))
        for _ in range(CASES_OF_FILE if is_long else CASES_IN_SHORT):
            entry = tree[name]
            assert isinstance(entry.content, bytes)
            what, content = damage(entry.content, rng)
            damaged = {path: other for path, other in tree.items() if path != name}
            if content is not None:
                damaged[name] = entry._replace(content=content)
            restore(damaged, folder)
            os.chdir(folder)
            outcome = READERS[top]()
            kind = judge(outcome, expected, top)
            tally.add(kind, f"{name}, {what}: {outcome.code} {outcome.message[:300]}")
    restore(tree, folder)
    os.chdir(folder)
