"""Options: defaults, and what is refused before anything is imported."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from gpflow_dwp.cli.fit_options import add_fit_options
from gpflow_dwp.cli.options import (
    add_evaluate_options,
    add_info_options,
    add_predict_options,
)

COMMANDS = [add_fit_options, add_predict_options, add_evaluate_options, add_info_options]


def parser(add_options: Callable[[argparse.ArgumentParser], None]) -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(exit_on_error=False)
    add_options(result)
    return result


def test_defaults_of_fit() -> None:
    assert vars(parser(add_fit_options).parse_args([])) == {
        "table": None,
        "target": None,
        "task": "regression",
        "test_fraction": 0.1,
        "columns": [],
        "drop": [],
        "categorical": [],
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
    assert vars(parser(add_predict_options).parse_args(["run", "x.csv", "-o", "y.csv"])) == {
        "run": Path("run"),
        "table": Path("x.csv"),
        "out": Path("y.csv"),
        "num_samples": 100,
        "seed": 0,
        "overwrite": False,
        "json": False,
    }


@pytest.mark.parametrize("add_options", COMMANDS)
def test_every_option_is_explained(add_options: Callable[..., None]) -> None:
    for action in parser(add_options)._actions:
        assert action.help


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
        "--latent-dim",
        "--importance-samples",
    ],
)
def test_counts_are_positive_integers(option: str, text: str) -> None:
    with pytest.raises(argparse.ArgumentError, match=f"positive integer, got '{text}'"):
        parser(add_fit_options).parse_args([f"{option}={text}"])


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
    with pytest.raises(argparse.ArgumentError, match=arguments[1]):
        parser(add_fit_options).parse_args(arguments)
