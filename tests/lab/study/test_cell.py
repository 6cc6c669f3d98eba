"""Cells: keys that tell them apart, and refusals before anything is trained."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_archive import tiny_cell

from gpflow_dwp.data import load_uci
from gpflow_dwp.lab.study.cell import RECIPE, Cell
from gpflow_dwp.lab.study.grid import make_cells
from gpflow_dwp.latent_variable_deep_gp import LatentVariableDeepGP
from gpflow_dwp.layers import (
    GlobalInducingGPLayer,
    LatentVariableLayer,
    RegressionGPLayer,
    WishartLayer,
)
from gpflow_dwp.models import DeepWishartProcess


def test_a_cell_survives_json() -> None:
    options = {"jitter": 1e-5, "whiten": True}
    for cell in (tiny_cell(), tiny_cell(options=options), tiny_cell(kl_annealing_steps=0)):
        assert Cell.from_dict(json.loads(json.dumps(cell.to_dict()))) == cell


def test_the_key_is_a_hash_of_everything_that_decides_the_result() -> None:
    cell = tiny_cell(1, model="A")
    canonical = (
        '{"batch_size":null,"dataset":"yacht","depth":1,"dtype":"float64",'
        '"kl_annealing_steps":null,"model":"A","num_importance_samples":1,"num_inducing":6,'
        '"num_prediction_samples":5,"num_samples":2,"num_steps":12,"options":{},'
        f'"protocol":"papers","recipe":{RECIPE},"seed":0,"split":1}}'
    )
    assert cell.key == hashlib.sha256(canonical.encode()).hexdigest()[:16]
    changes: list[dict[str, Any]] = [
        {"depth": 2},
        {"model": "AB"},
        {"batch_size": 4},
        {"dtype": "float32"},
        {"seed": 1},
        {"num_steps": 13},
        {"kl_annealing_steps": 0},
        {"kl_annealing_steps": 6},
        {"options": {"jitter": 1e-5}},
        {"options": {"jitter": 1e-4}},
        {"options": {"latent_dim": 1}},
        {"options": {"warp": True}},
        {"options": {"latent_dim": 1}, "num_importance_samples": 5},
    ]
    assert len({cell.key} | {tiny_cell(1, **{"model": "A", **c}).key for c in changes}) == 14


@pytest.mark.parametrize("family", ["GW", "A", "AB"])
def test_models_are_built_with_the_cells_numbers(family: str) -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(20, 3)), rng.normal(size=(20, 1))

    model = tiny_cell(model=family, depth=3, options={"jitter": 1e-5}).build(data)

    assert model.num_samples == 2
    assert len(model.hidden_layers) == 2
    for layer in model.hidden_layers:
        assert isinstance(layer, WishartLayer)
        assert (layer.df, layer.num_inducing, layer.jitter) == (3, 6, 1e-5)
        factor = layer.bartlett_factor
        assert (factor.packed_row_mixing is not None) == (family != "GW")
        assert (factor.column_mixing_tril is not None) == (family == "AB")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": "moons"}, "dataset must be one of boston, .*, got 'moons'"),
        ({"model": "LV"}, "model must be one of DGP, .*, LV-DWP, got 'LV'"),
        ({"model": "LV-GP-GP", "depth": 3}, "depth must be 2 for model LV-GP-GP, got 3"),
        (
            {"protocol": "slow"},
            "protocol must be one of papers, fast, vmg, cde, cde-fast, got 'slow'",
        ),
        ({"dtype": "float16"}, "dtype must be one of float64, float32, got 'float16'"),
        ({"depth": 0}, "depth must be a positive integer, got 0"),
        ({"batch_size": 0}, "batch_size must be a positive integer, got 0"),
        (
            {"kl_annealing_steps": -1},
            "kl_annealing_steps must be an integer of at least 0, got -1",
        ),
        ({"split": -1}, "split must be an integer of at least 0, got -1"),
        ({"split": 20}, "split must be an integer from 0 to 19 for yacht, got 20"),
        ({"dataset": "protein", "split": 5}, "from 0 to 4 for protein, got 5"),
        ({"num_steps": 1.5}, "num_steps must be a positive integer"),
        ({"options": {"colour": 1}}, "options: the builder of model GW takes no 'colour'"),
        ({"num_importance_samples": 0}, "num_importance_samples must be a positive integer"),
        ({"num_importance_samples": 2}, "must be 1 for this cell of model GW, got 2"),
        (
            {"model": "LV-DWP", "options": {"latent_dim": 2}},
            "options: the builder of model LV-DWP takes no 'latent_dim'",
        ),
        ({"options": {"seed": 1}}, "options: the builder of model GW takes no 'seed'"),
        ({"recipe": 1}, f"recipe must be {RECIPE}, that of this version, got 1"),
        ({"rank": 1}, r"unknown fields \['rank'\]"),
    ],
)
def test_cells_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny_cell(**changes)


def test_the_protocol_is_part_of_a_cell(archive: Path) -> None:
    where = {"datasets": ["yacht"], "depths": [2], "models": ["GW"], "splits": [0]}

    (papers,) = make_cells(**where, uci_folder=archive)
    (fast,) = make_cells(**where, protocol="fast", uci_folder=archive)

    assert (papers.num_samples, fast.num_samples) == (10, 2)
    assert Cell.from_dict(fast.to_dict()).protocol == "fast"


@pytest.mark.parametrize(
    ("model", "depth"), [("GP", 1), ("LV-GP", 1), ("GP-GP", 2), ("LV-GP-GP-GP", 3)]
)
def test_deep_gps_with_latent_variables(model: str, depth: int) -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(20, 3)), rng.normal(size=(20, 1))

    built = tiny_cell(model=model, depth=depth, options={"num_functions": 2}).build(data)

    assert isinstance(built, LatentVariableDeepGP)
    kinds = ["LV" if isinstance(layer, LatentVariableLayer) else "GP" for layer in built.layers]
    assert "-".join(kinds) == model
    assert built.num_samples == 2 and built.output_layer.num_inducing == 6


def test_deep_wishart_process_with_latent_variables() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(20, 3)), rng.normal(size=(20, 1))

    built = tiny_cell(model="LV-DWP", depth=3).build(data)

    assert built.latent_layer.latent_dim == 1
    assert len(built.hidden_layers) == 2
    assert all(layer.bartlett_factor.family == "A" for layer in built.hidden_layers)


def test_a_cell_needs_its_coordinates() -> None:
    with pytest.raises(ValueError, match=r"missing fields \['depth', 'model', 'split'\]"):
        Cell.from_dict({"dataset": "yacht"})


@pytest.mark.parametrize(
    ("options", "layer"),
    [({}, GlobalInducingGPLayer), ({"output": "regression"}, RegressionGPLayer)],
)
def test_the_output_layer_is_the_papers_unless_asked_otherwise(
    archive: Path, options: dict[str, str], layer: type
) -> None:
    (cell,) = make_cells(["yacht"], [2], ["A"], [0], options=options, uci_folder=archive)

    model = cell.build(load_uci("yacht", 0, folder=archive).train)

    assert isinstance(model, DeepWishartProcess)
    assert type(model.output_layer) is layer
