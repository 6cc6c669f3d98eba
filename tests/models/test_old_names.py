"""Models that were saved when their classes had other names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from model_reference import toy_data

from gpflow_dwp import build_latent_variable_deep_gp, build_matrix_gaussian_network
from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.files import seal, unseal
from gpflow_dwp.models import VariationalModel, load_model, save_model

DATA = toy_data(12)
XNEW = toy_data(5, seed=5)[0]
MODELS: dict[str, Callable[[], VariationalModel]] = {
    "latent variables": lambda: build_latent_variable_deep_gp(DATA, num_inducing=4),
    "network": lambda: build_matrix_gaussian_network(DATA, width=3),
}
OLD_NAMES = {
    "latent_variable_deep_gp.LatentVariableDeepGP": "models.LatentVariableDeepGP",
    "latent_variable_deep_gp.LocalInducingGPLayer": "layers.LocalInducingGPLayer",
    "likelihoods.GammaGaussian": "layers.GammaGaussian",
    "matrix_gaussian.MatrixGaussianLayer": "layers.MatrixGaussianLayer",
    "matrix_gaussian.MatrixGaussianNetwork": "models.MatrixGaussianNetwork",
}


def rewrite(folder: Path, changes: dict[str, str]) -> None:
    """Put other words into the description of a saved model, and seal it again."""
    path = folder / "model.json"
    text = json.dumps(unseal(json.loads(path.read_text())))
    for word, instead in changes.items():
        text = text.replace(word, instead)
    path.write_text(json.dumps(seal(json.loads(text))))


@pytest.mark.parametrize("name", MODELS)
def test_old_names_are_those_of_the_same_classes(name: str, tmp_path: Path) -> None:
    """Would catch a class that moves and leaves the models behind that name it."""
    model = MODELS[name]()
    save_model(model, tmp_path)
    rewrite(tmp_path, OLD_NAMES)
    assert not any(new in (tmp_path / "model.json").read_text() for new in OLD_NAMES)

    again = load_model(tmp_path)

    assert type(again) is type(model)
    for value, expected in zip(
        again.predict_y(XNEW, num_samples=3, seed=1),
        model.predict_y(XNEW, num_samples=3, seed=1),
        strict=True,
    ):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("names", [{}, OLD_NAMES], ids=["new", "old"])
def test_sizes_are_checked_under_either_name(names: dict[str, str], tmp_path: Path) -> None:
    """Would catch an old name under which a model takes all the memory it likes."""
    save_model(MODELS["network"](), tmp_path)
    rewrite(tmp_path, names | {'"num_outputs": 3': '"num_outputs": 1000000000'})

    with pytest.raises(SavedModelError, match=r"a model of \d{10,} numbers or more"):
        load_model(tmp_path)
