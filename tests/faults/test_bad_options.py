"""Options that cannot be used are refused in one line that names them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from command_line import columns, declared_options, write_csv
from cyclopts import Argument, Parameter
from faults.conftest import finish_run, some
from faults.outcomes import Tally, command

PART = "bad options"
IN_SHORT = 60
NO_INTEGERS = ("0", "-1", "1.5", "x", "", "nan", "1e3", "٣٣x", "0x10")
# Of each type of option, what it is not.
BAD_VALUES = {
    "positive_integer": NO_INTEGERS,
    "size": (*NO_INTEGERS, "1000001", "99999999999"),
    "seed": ("-1", str(2**32), "1.5", "x", "", "nan"),
    "fraction": ("0", "1", "-0.1", "1.5", "nan", "inf", "x", ""),
    "splits": ("4-0", "0-", "-1", "one", "", "0-99999999999"),
    "settings": ("", "x", "=1", "1=2"),
    "float": ("x", ""),
}
# What each command needs besides.
NEEDED = {
    "fit": ("table.csv", "--target", "price"),
    "predict": ("run", "table.csv", "-o", "p.csv"),
    "evaluate": ("run", "table.csv"),
    "export": ("run", "-o", "program"),
}
T = ("fit", "table.csv", "--target", "price")
P = ("predict", "run", "table.csv", "-o")
# Those that tests of the commands do not have.
MISTAKES: list[tuple[tuple[str, ...], str]] = [
    (("fit", "table.csv", "--target", ""), "''"),
    (("fit", "--categorical", "a"), "table"),
    ((*T, "--latent-dim", "1", "--output-posterior", "regression"), "regression|latent"),
    ((*T, "--categorical", "price"), "price"),
    ((*T, "--categorical", ""), "''"),
    ((*T, "--log", "folder"), "folder"),
    ((*T, "--log", "table.csv/log.csv"), "log.csv|table.csv"),
    ((*T, "--log", "/proc/nope/log.csv"), "/proc/nope"),
    ((*T, "--out", "/proc/nope"), "/proc/nope"),
    (("fit", "run/table.csv", "--target", "price"), "run/table.csv"),
    (("fit", "--config", "folder"), "folder"),
    (("fit", "--config", "binary.yaml"), "binary.yaml"),
    (("fit", "--config", "nested.yaml"), "depth"),
    (("fit", "--resume", "absent"), "absent"),
    (("fit", "--resume", "table.csv"), "table.csv"),
    ((*P, "run"), "run"),
    *(
        ((*P, f"run/{name}", "--overwrite"), name)
        for name in ("run.json", "model/model.json", "metrics.json", "new.csv", "model/new.csv")
    ),
    (("predict", "run/model", "table.csv", "-o", "p.csv"), "run/model"),
    (("evaluate", "run", "run"), "run"),
    (("evaluate", "absent", "table.csv"), "absent"),
    (("export", "run", "-o", "table.csv"), "table.csv"),
    (("export", "run", "-o", "run/model"), "run/model"),
    (("info", "table.csv"), "table.csv"),
    (("completion", "nope"), "nope"),
]


def generated() -> Iterator[tuple[tuple[str, ...], str]]:
    """Each option of each command with each value that is none of its type."""
    for name, option in declared_options():
        if name not in NEEDED or option.is_positional_only() or option.name == "WHAT":
            continue
        needed, keyword = NEEDED[name], option.name
        if keyword in needed:  # a list cannot come twice
            place = needed.index(keyword)
            needed = (*needed[:place], *needed[place + 2 :])
        values = BAD_VALUES.get(_type_of(option), ())
        if option.get_choices(force=True):
            values = ("", "nope", f"{option.get_choices(force=True)[0]}x")
        for value in values:
            yield (name, *needed, f"{keyword}={value}"), keyword
        number = option.parameter.consume_multiple
        if not option.is_flag() and not (isinstance(number, tuple) and number[0] == 0):
            yield (name, *needed, keyword), keyword


def _type_of(option: Argument) -> str:
    """What reads an option's text, also where None is allowed."""
    alternatives = [part for hint in get_args(option.hint) for part in get_args(hint)[1:]]
    for parameter in (option.parameter, *alternatives):
        if isinstance(parameter, Parameter) and parameter.converter is not None:
            return parameter.converter.__name__.lstrip("_")
    return "float" if option.hint is float else ""


def prepare(folder: Path) -> None:
    """Files that the mistakes speak of."""
    (folder / "folder").mkdir()
    (folder / "folder/mine.txt").write_text("mine")
    table = {name: values for name, values in columns("regression", 12).items() if name != "price"}
    write_csv(folder / "inputs.csv", table)
    write_csv(folder / "other.csv", table)
    for name, text in {
        "nested": "depth: {a: 1}\ntable: table.csv\ntarget: price\n",
    }.items():
        (folder / f"{name}.yaml").write_text(text)
    (folder / "binary.yaml").write_bytes(bytes(range(256)))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("quick")
def test_options_of_no_use_are_refused(
    here: Path, tally: Tally, is_long: bool, request: pytest.FixtureRequest
) -> None:
    prepare(here)
    finish_run()
    request.getfixturevalue("no_training")
    before = content(here)
    for arguments, piece in [*some([*generated()], is_long, IN_SHORT), *MISTAKES]:
        outcome = command(*arguments)
        tally.add_refusal(outcome, piece, " ".join(arguments))
        if (now := content(here)) != before:
            changed = sorted({name for name, _ in before.items() ^ now.items()})
            tally.add("lost", f"{' '.join(arguments)} changes {changed}")
            before = now
