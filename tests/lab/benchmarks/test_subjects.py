"""Every subject of the package can be prepared and done."""

from __future__ import annotations

import typing

import gpflow
import pytest

from gpflow_dwp.data import UCI_DATASETS
from gpflow_dwp.lab.benchmarks.shapes import DatasetName, Shape, posterior_arguments
from gpflow_dwp.lab.benchmarks.subjects import prepare_floor, prepare_prediction, prepare_step

SHAPE = list(Shape(8, 2, 4, 2, 2))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("model", ["A-whitened", "DGP"])
def test_a_step_can_be_taken(model: str) -> None:
    with gpflow.config.as_context():
        prepare_step(model, SHAPE, "float64")(2)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("task", ["predict_f", "predict_y", "draws and predict_y"])
def test_every_prediction_can_be_made(task: str) -> None:
    with gpflow.config.as_context():
        prepare_prediction("A-whitened", SHAPE, "float32", task)(2)


@pytest.mark.parametrize("model", ["AB", None])
def test_floors_can_be_run(model: str | None) -> None:
    prepare_floor(model, SHAPE, "float64")(2)


def test_every_data_set_can_be_named() -> None:
    assert typing.get_args(DatasetName) == tuple(UCI_DATASETS)


def test_a_name_says_what_the_posterior_is() -> None:
    assert posterior_arguments("A-whitened") == {"posterior": "A", "whiten": True}
    assert posterior_arguments("AB") == {"posterior": "AB", "whiten": False}
