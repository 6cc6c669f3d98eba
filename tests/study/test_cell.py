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
from gpflow_dwp.layers import (
    GlobalInducingGPLayer,
    LatentVariableLayer,
    RegressionGPLayer,
    WishartLayer,
)
from gpflow_dwp.models import DeepWishartProcess, LatentVariableDeepGP
from gpflow_dwp.study import STUDY_MODELS, Cell, make_cells
from gpflow_dwp.study import cell as cell_module
from gpflow_dwp.training import PROTOCOLS


def test_a_cell_survives_json() -> None:
    options = {"jitter": 1e-5, "whiten": True}
    for cell in (tiny_cell(), tiny_cell(options=options), tiny_cell(kl_annealing_steps=0)):
        assert Cell.from_dict(json.loads(json.dumps(cell.to_dict()))) == cell


def test_the_key_is_a_hash_of_everything_that_decides_the_result() -> None:
    cell = tiny_cell(1, model="A")
    canonical = (
        '{"batch_size":null,"dataset":"yacht","depth":1,"dtype":"float64","model":"A",'
        '"num_inducing":6,"num_prediction_samples":5,"num_samples":2,"num_steps":12,"seed":0,'
        '"split":1}'
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
        {"options": {"latent_dim": 1}, "num_importance_samples": 5},
    ]
    assert len({cell.key} | {tiny_cell(1, **{"model": "A", **c}).key for c in changes}) == 13


def test_combinations_come_split_by_split(archive: Path) -> None:
    cells = make_cells(["yacht"], [2, 1], ["AB", "GW"], [1, 0], uci_folder=archive)

    assert [(cell.depth, cell.split, cell.model) for cell in cells] == [
        (depth, split, model) for depth in (2, 1) for split in (1, 0) for model in ("AB", "GW")
    ]
    cell = cells[0]
    assert (cell.num_steps, cell.num_inducing, cell.dtype) == (20_000, 100, "float64")
    assert (cell.num_samples, cell.num_prediction_samples) == (10, 100)


@pytest.mark.parametrize(
    ("asked", "usual", "expected"),
    [
        (None, None, None),
        (None, 10, 10),
        (5, None, 5),
        (31, 10, 31),
        (32, 10, None),
        (50, 10, None),
    ],
)
def test_batch_sizes(
    asked: int | None,
    usual: int | None,
    expected: int | None,
    archive: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    protocol = PROTOCOLS["papers"]._replace(batch_size=lambda num_rows: usual)
    monkeypatch.setitem(PROTOCOLS, "papers", protocol)

    (cell,) = make_cells(["yacht"], [2], ["GW"], [0], batch_size=asked, uci_folder=archive)

    assert cell.batch_size == expected


def test_matrix_gaussian_networks_have_the_protocol_of_their_paper(archive: Path) -> None:
    other, cell = make_cells(["yacht"], [2], ["GW", "VMG"], [0], uci_folder=archive)

    assert (cell.protocol, cell.num_steps, cell.num_samples) == ("vmg", 60_000, 1)
    assert (cell.batch_size, cell.options) == (20, (("num_pseudo_data", 5),))
    assert (other.protocol, other.num_steps, other.options) == ("papers", 20_000, ())
    changes = {"num_steps": 7, "num_samples": 3, "options": {"num_pseudo_data": 2}}
    (cell,) = make_cells(["yacht"], [2], ["VMG"], [0], uci_folder=archive, **changes)
    assert (cell.num_steps, cell.num_samples, cell.options) == (7, 3, (("num_pseudo_data", 2),))
    (cell,) = make_cells(["yacht"], [2], ["VMG"], [0], protocol="fast", uci_folder=archive)
    assert (cell.protocol, cell.num_steps, cell.options) == ("fast", 20_000, ())


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
    # Results that were kept before there was a choice stay what they are.
    assert "protocol" not in papers.to_dict()
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


def test_conditional_density_estimation(archive: Path) -> None:
    models = ["GP", "LV-GP-GP", "LV-DWP", "A"]
    where = {"datasets": ["yacht"], "depths": [2, 3], "splits": [0], "uci_folder": archive}

    cells = make_cells(models=models, protocol="cde", num_importance_samples=5, **where)

    # A deep GP's name says its depth; it is there once.
    expected = [
        ("GP", 1, "natural", 1, 1),
        ("LV-GP-GP", 2, "natural", 1, 5),
        ("LV-DWP", 2, "fast", 2, 5),
        ("A", 2, "fast", 2, 1),
        ("LV-DWP", 3, "fast", 2, 5),
        ("A", 3, "fast", 2, 1),
    ]
    assert expected == [
        (c.model, c.depth, c.training_protocol, c.num_samples, c.num_importance_samples)
        for c in cells
    ]
    assert {(c.num_inducing, c.num_prediction_samples, c.batch_size) for c in cells} == {
        (128, 2_000, None)
    }
    fast = make_cells(models=models, protocol="cde-fast", **where)
    assert {(c.training_protocol, c.num_samples, c.num_inducing) for c in fast} == {
        ("fast", 2, 128)
    }
    (asked,) = make_cells(
        models=["GP"], protocol="cde", num_inducing=9, num_samples=4, batch_size=7, **where
    )
    assert (asked.num_inducing, asked.num_samples, asked.batch_size) == (9, 4, 7)


def test_minibatches_of_conditional_density_estimation(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = PROTOCOLS["natural"]._replace(batch_size=lambda num_rows: num_rows - 1)
    monkeypatch.setitem(PROTOCOLS, "natural", protocol)

    cells = make_cells(["yacht"], [1], ["GP", "A"], [0], protocol="cde", uci_folder=archive)

    assert [cell.batch_size for cell in cells] == [31, 31]


def test_importance_samples_are_for_latent_variables(archive: Path) -> None:
    where = {"datasets": ["yacht"], "depths": [2], "splits": [0], "uci_folder": archive}
    latent = {"options": {"latent_dim": 1}, "num_importance_samples": 5}

    with_latents = make_cells(models=["GW", "DIWP"], **latent, **where)
    (without,) = make_cells(models=["GW"], num_importance_samples=5, **where)

    assert [cell.num_importance_samples for cell in with_latents] == [5, 5]
    assert without.num_importance_samples == 1
    # As before there was a choice.
    assert "num_importance_samples" not in without.to_dict()


def test_a_cell_needs_its_coordinates() -> None:
    with pytest.raises(ValueError, match=r"missing fields \['depth', 'model', 'split'\]"):
        Cell.from_dict({"dataset": "yacht"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datasets": []}, "datasets must hold"),
        ({"models": ["GW", "GW"]}, "models must hold each"),
        ({"num_inducing": 0}, "num_inducing must be a positive integer, got 0"),
        ({"models": ["LV"]}, "model must be one of"),
        ({"splits": [20]}, "split must be an integer from 0 to 19 for yacht, got 20"),
        ({"splits": [5]}, "index_train_5.txt"),
        ({"uci_folder": "absent"}, "absent"),
        ({"datasets": ["boston"]}, "bostonHousing"),
    ],
)
def test_combinations_that_are_refused(
    changes: dict[str, Any], message: str, archive: Path
) -> None:
    arguments = {
        "datasets": ["yacht"],
        "depths": [2],
        "models": ["GW"],
        "splits": [0],
        "uci_folder": archive,
    }
    with pytest.raises(ValueError, match=message):
        make_cells(**{**arguments, **changes})


def test_models_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cell_module._BUILDERS, "DGP", ("build_nothing", {}))

    with pytest.raises(ValueError, match="model DGP is not available"):
        tiny_cell(model="DGP")


def test_every_model_has_a_name() -> None:
    plain = ("DGP", "DIWP", "GW", "A", "AB", "VMG")
    latent = ("GP", "GP-GP", "LV-GP", "LV-GP-GP", "LV-GP-GP-GP", "LV-DWP")
    assert plain + latent == STUDY_MODELS


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("jitter", "abc", "options: model A cannot be built with them: .*"),
        (
            "width",
            0,
            "options: model A cannot be built with them: width must be a positive integer",
        ),
        ("output", "both", "options: model A cannot be built with them: output must be one of"),
    ],
)
def test_options_are_tried_before_anything_is_trained(
    archive: Path, name: str, value: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make_cells(["yacht"], [2], ["A"], [0], options={name: value}, uci_folder=archive)


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
