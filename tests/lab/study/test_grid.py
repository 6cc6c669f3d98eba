"""Combinations of cells: their order, what fills the gaps, and what is refused before training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpflow_dwp.lab.study.grid import make_cells
from gpflow_dwp.training import PROTOCOLS


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datasets": []}, "datasets must hold"),
        ({"models": ["GW", "GW"]}, "models must hold each"),
        ({"num_inducing": 0}, "num_inducing must be a positive integer, got 0"),
        ({"splits": [5]}, "index_train_5.txt"),
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
