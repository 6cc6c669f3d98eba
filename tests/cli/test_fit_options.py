"""Options of fit and their like: defaults, and what is refused before anything is imported."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import declared_options, parse
from cyclopts import CoercionError


def test_defaults_of_fit() -> None:
    assert parse("fit") == {
        "table": None,
        "target": None,
        "task": "regression",
        "test_fraction": 0.1,
        "columns": (),
        "drop": (),
        "categorical": (),
        "impute": None,
        "depth": None,
        "model": "DWP",
        "posterior": None,
        "whiten": False,
        "warp": False,
        "noise": None,
        "output_posterior": None,
        "kernel": None,
        "width": None,
        "num_pseudo_data": None,
        "num_inducing": None,
        "inducing": None,
        "num_steps": None,
        "num_samples": None,
        "latent_dim": None,
        "num_importance_samples": 1,
        "batch_size": None,
        "devices": None,
        "seed": 0,
        "out": None,
        "overwrite": False,
        "quiet": False,
        "validation_fraction": None,
        "validation_metric": None,
        "patience": None,
        "callback_interval": 100,
        "log": None,
        "config": None,
        "resume": None,
        "json": False,
    }


def test_defaults_of_predict() -> None:
    assert parse("predict", "run", "x.csv", "-o", "y.csv") == {
        "run": Path("run"),
        "table": Path("x.csv"),
        "out": Path("y.csv"),
        "num_samples": 100,
        "seed": 0,
        "overwrite": False,
        "json": False,
    }


def test_every_option_is_explained() -> None:
    options = [*declared_options()]
    assert len(options) > 150
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
    with pytest.raises(CoercionError, match=f"positive integer, got '{text}'") as caught:
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
