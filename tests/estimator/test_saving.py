"""Estimators in files."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest

from gpflow_dwp import emulation, save_model
from gpflow_dwp.estimator import DeepWishartClassifier, DeepWishartRegressor
from gpflow_dwp.exceptions import SavedModelError

pytestmark = pytest.mark.usefixtures("eager")

X = np.random.default_rng(0).uniform(-1.0, 1.0, (24, 2))
Y = np.c_[5.0 + 20.0 * np.sin(3.0 * X[:, 0]), np.full(24, 7.0), X[:, 1]]


MANY_NUMBERS = {"class": "gpflow.kernels.Coregion", "arguments": {"output_dim": 2_000, "rank": 500}}


class Own(gpflow.kernels.SquaredExponential):
    """A kernel of one's own."""


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_regressor_comes_back_as_a_whole(tmp_path: Path) -> None:
    """Catches lost units, constants, failures, rows that ``tell`` adds to, and draws."""
    given = {"depth": 1, "kernel": "SquaredExponential", "likelihood": "gaussian", "num_steps": 2}
    fitted = DeepWishartRegressor(**given, random_state=0).fit(X, Y)
    failures = DeepWishartClassifier(depth=1, kernel=Own(), num_steps=1, random_state=0)
    fitted.failure_classifier_ = failures.fit(X, X[:, 0] > 0.5)
    fitted.save(tmp_path / "first")
    loaded = DeepWishartRegressor.load(tmp_path / "first", custom_classes=[Own])
    loaded.save(tmp_path / "second")

    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert vars(loaded).keys() == vars(fitted).keys()
    for one, other in zip(
        (*loaded.predict(X, return_std=True), emulation.leave_one_out(loaded).std),
        (*fitted.predict(X, return_std=True), emulation.leave_one_out(fitted).std),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    assert len(loaded.tell(X[:2] + 0.05, Y[:2])._rows[0]) == len(X) + 2


@pytest.mark.parametrize("labels", [["a", "long"], [False, True]])
def test_labels_and_kernels_come_back(tmp_path: Path, labels: list[Any]) -> None:
    """Catches labels of another type, and classes that only the user knows."""
    y = np.array(labels, object if labels[0] == "a" else None)[(X[:, 0] > 0.0).astype(int)]
    fitted = DeepWishartClassifier(depth=1, kernel=Own(), num_steps=1, random_state=0).fit(X, y)
    fitted.save(tmp_path / "classifier")
    loaded = DeepWishartClassifier.load(tmp_path / "classifier", custom_classes=[Own])
    assert loaded.classes_.dtype == fitted.classes_.dtype
    assert loaded.predict(X).tolist() == fitted.predict(X).tolist()
    with pytest.raises(SavedModelError, match="Own"):
        DeepWishartClassifier.load(tmp_path / "classifier")


def test_what_cannot_be_saved_or_loaded_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(ValueError, match="not fitted"):
        DeepWishartRegressor().save(path)
    short = DeepWishartRegressor(depth=1, kernel=Own(), num_steps=1, random_state=0).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="got DeepWishartRegressor"):
        save_model(short, path)  # type: ignore[arg-type]
    short.save(path)
    files = zipfile.ZipFile(path)
    contents = {name: files.read(name) for name in files.namelist()}
    description = json.loads(contents["estimator.json"])
    for wrong, expected in (
        ({"format_version": 0}, "format is not"),
        ({"estimator": {"class": "os.system", "fields": {}}}, "os.system"),
        (
            {"estimator": {"class": "Standardiser", "fields": {"mean": [0], "scale": [1]}}},
            "must hold",
        ),
        ({"estimator": 3}, "must hold"),
        ({"estimator": [{"model": "model 0.zip"}] * 2}, "model 0.zip"),
        ({"estimator": [{"part": MANY_NUMBERS}] * 10}, "more room than"),
    ):
        changed = {**contents, "estimator.json": json.dumps({**description, **wrong})}
        with zipfile.ZipFile(tmp_path / "wrong", "w") as archive:
            for name, content in changed.items():
                archive.writestr(name, content)
        with pytest.raises(SavedModelError, match=expected):
            DeepWishartRegressor.load(tmp_path / "wrong", custom_classes=[Own])
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SavedModelError, match="damaged"):
        DeepWishartRegressor.load(path)
    with pytest.raises(SavedModelError, match="cannot be read"):
        DeepWishartRegressor.load(tmp_path / "missing")
    short.random_state = np.random.RandomState(0)
    with pytest.raises(SavedModelError, match="random_state"):
        short.save(path)
