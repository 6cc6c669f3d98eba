"""Options of fit and their like: defaults, and what is refused before anything is imported."""

from __future__ import annotations

import pytest
from command_line import declared_options, parse
from cyclopts import CoercionError


def test_every_option_is_explained() -> None:
    options = [*declared_options()]
    assert len(options) > 60
    for command, option in options:
        assert option.parameter.help, f"{command} {option.name}"


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "many"])
@pytest.mark.parametrize(
    "option",
    [
        "--depth",
        "--width",
        "--hidden-units",
        "--num-pseudo-data",
        "--num-inducing",
        "--num-steps",
        "--num-samples",
        "--batch-size",
        "--devices",
        "--latent-dim",
        "--importance-samples",
    ],
)
def test_counts_are_positive_integers(option: str, text: str) -> None:
    with pytest.raises(CoercionError, match=f"positive integer.*, got '{text}'") as caught:
        parse("fit", f"{option}={text}")
    assert option in caught.value.argument.names


@pytest.mark.parametrize(
    "arguments",
    [
        ["--task", "ranking"],
        ["--posterior", "a"],
        ["--inducing", "grid"],
        ["--seed", "x"],
        ["--seed", "-1"],
        ["--test-fraction", "x"],
        ["--validation-fraction", "1"],
        ["--validation-metric", "mae"],
    ],
)
def test_choices_are_refused(arguments: list[str]) -> None:
    with pytest.raises(CoercionError, match=arguments[1]) as caught:
        parse("fit", *arguments)
    assert caught.value.argument.name == arguments[0]
