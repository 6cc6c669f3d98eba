"""Cells: what tells one from another, and which there are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpflow_dwp.lab.comparison import ComparisonCell, estimator_class, make_comparison

CELL = ComparisonCell("yacht", "dwp", "dwp", 3, (("depth", 2),), (("num_steps", 7),))


def test_a_cell_is_what_it_was_written_as() -> None:
    fields = json.loads(json.dumps(CELL.to_dict()))

    assert ComparisonCell.from_dict(fields) == CELL
    assert ComparisonCell.from_dict(fields).key == CELL.key
    assert set(CELL.place) <= set(fields)
    assert CELL.title == "yacht, dwp, split 3"


def test_keys_stay_what_they_are() -> None:
    """Results that are kept would be run again if they changed."""
    assert ComparisonCell("yacht", "exact-gp", "exact-gp", 0).key == "2209e9afa606b668"


@pytest.mark.parametrize(
    "change",
    [
        {"table": "boston"},
        {"label": "other"},
        {"split": 4},
        {"settings": {"depth": 3}},
        {"defaults": {"num_steps": 8}},
    ],
)
def test_whatever_changes_is_another_cell(change: dict[str, Any]) -> None:
    """Results of other defaults must not stand in for those of today's."""
    assert ComparisonCell.from_dict(CELL.to_dict() | change).key != CELL.key


def test_a_cell_with_other_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="a cell must have the fields"):
        ComparisonCell.from_dict({"table": "yacht"})


def test_models_and_splits_are_left_out_where_there_are_none() -> None:
    models = ["exact-gp", "logistic", "hist-gb"]
    cells = make_comparison(["wine", "protein", "yacht"], models, [4, 5])

    assert [(c.split, c.table, c.model) for c in cells] == [
        (4, "wine", "logistic"),
        (4, "wine", "hist-gb"),
        (4, "protein", "exact-gp"),
        (4, "protein", "hist-gb"),
        (4, "yacht", "exact-gp"),
        (4, "yacht", "hist-gb"),
        (5, "wine", "logistic"),
        (5, "wine", "hist-gb"),
        (5, "yacht", "exact-gp"),
        (5, "yacht", "hist-gb"),
    ]
    assert all(cell.label == cell.model and not cell.settings for cell in cells)


def test_ours_has_settings_and_a_label() -> None:
    pytest.importorskip("sklearn", minversion="1.6")
    settings = {"num_steps": 5, "depth": 2}
    (first,) = make_comparison(["yacht"], ["dwp"], [0], settings=settings)
    (second,) = make_comparison(["wine"], ["dwp"], [0], settings=settings, label="short")
    (plain,) = make_comparison(["yacht"], ["dwp"], [0])

    assert (first.label, second.label, plain.label) == ("dwp-num_steps=5-depth=2", "short", "dwp")
    assert first.settings == (("depth", 2), ("num_steps", 5))
    arguments = estimator_class("regression")().get_params()
    assert set(dict(plain.defaults)) == set(arguments)
    assert dict(plain.defaults)["num_steps"] == arguments["num_steps"]
    assert set(dict(first.defaults)) == set(arguments) - {"depth", "num_steps"}


@pytest.mark.parametrize(
    ("tables", "models", "splits", "more", "message"),
    [
        ([], ["svc"], [0], {}, r"tables must hold each of at least one value once, got \[\]"),
        (["wine"], ["svc", "svc"], [0], {}, "models must hold each"),
        (["wine"], ["svc"], [], {}, "splits must hold each"),
        (["nope"], ["svc"], [0], {}, "tables must be one of .* got 'nope'"),
        (["wine"], ["nope"], [0], {}, "models must be one of .* got 'nope'"),
        (["wine"], ["svc"], [0.5], {}, r"splits\[0\] must be an integer"),
        (["wine"], ["exact-gp"], [0], {}, "there is nothing to compare"),
        (["protein"], ["exact-gp"], [5], {}, "tables protein have no split 5"),
        (["wine"], ["svc"], [0], {"label": "x"}, "settings and label are those of dwp, got"),
        (["wine"], ["svc"], [0], {"settings": {"depth": 2}}, "are those of dwp"),
        (["wine"], ["dwp"], [0], {"settings": {"nope": 2}}, "DeepWishartClassifier takes no 'n"),
        (["yacht"], ["dwp"], [0], {"settings": {"nope": 2}}, "DeepWishartRegressor takes no 'n"),
        (["wine"], ["dwp"], [0], {"label": "svc"}, "label must be a name of its own"),
        (["wine"], ["dwp"], [0], {"label": " "}, "label must be a name of its own"),
        (["wine"], ["dwp"], [0], {"label": "a|b"}, "label must be a name of its own"),
    ],
)
def test_refusals(
    tables: list[str], models: list[str], splits: list[Any], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make_comparison(tables, models, splits, **more)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": "nope"}, "table must be one of"),
        ({"model": "nope"}, "model must be one of"),
        ({"model": "svc"}, "model svc is not for regression, as yacht is"),
        ({"split": 20}, "split must be an integer from 0 to 19 for yacht, got 20"),
    ],
)
def test_cells_that_there_are_not(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ComparisonCell.from_dict(CELL.to_dict() | change)
