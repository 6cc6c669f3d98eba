"""Cells: keys that tell them apart, and refusals before anything is trained."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_archive import tiny_cell

from gpflow_dwp.layers import WishartLayer
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
    ]
    assert len({cell.key} | {tiny_cell(1, **{"model": "A", **c}).key for c in changes}) == 11


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
        ({"model": "GP"}, "model must be one of DGP, DIWP, GW, A, AB, VMG, got 'GP'"),
        ({"protocol": "slow"}, "protocol must be one of fast, papers, vmg, got 'slow'"),
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


def test_a_cell_needs_its_coordinates() -> None:
    with pytest.raises(ValueError, match=r"missing fields \['depth', 'model', 'split'\]"):
        Cell.from_dict({"dataset": "yacht"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datasets": []}, "datasets must hold"),
        ({"models": ["GW", "GW"]}, "models must hold each"),
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
    assert STUDY_MODELS == ("DGP", "DIWP", "GW", "A", "AB", "VMG")
