"""Models that were saved when their classes had other names."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
from model_reference import toy_data

from gpflow_dwp import build_latent_variable_deep_gp, build_matrix_gaussian_network
from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.files import seal, unseal
from gpflow_dwp.models import VariationalModel, model_from_bytes, model_to_bytes

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


def rewritten(content: bytes, changes: dict[str, str]) -> bytes:
    """A saved model with other words in its description, sealed again."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(buffer, "w") as other:
        for name in archive.namelist():
            part = archive.read(name)
            if name == "model.json":
                text = json.dumps(unseal(json.loads(part)))
                for word, instead in changes.items():
                    text = text.replace(word, instead)
                part = json.dumps(seal(json.loads(text))).encode()
            other.writestr(zipfile.ZipInfo(name), part)
    return buffer.getvalue()


@pytest.mark.parametrize("name", MODELS)
def test_old_names_are_those_of_the_same_classes(name: str) -> None:
    """Would catch a class that moves and leaves the models behind that name it."""
    model = MODELS[name]()
    content = rewritten(model_to_bytes(model), OLD_NAMES)
    assert not any(new.encode() in content for new in OLD_NAMES)

    again = model_from_bytes(content)

    assert type(again) is type(model)
    for value, expected in zip(
        again.predict_y(XNEW, num_samples=3, seed=1),
        model.predict_y(XNEW, num_samples=3, seed=1),
        strict=True,
    ):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("names", [{}, OLD_NAMES], ids=["new", "old"])
def test_sizes_are_checked_under_either_name(names: dict[str, str]) -> None:
    """Would catch an old name under which a model takes all the memory it likes."""
    content = model_to_bytes(MODELS["network"]())
    hostile = rewritten(content, names | {'"num_outputs": 3': '"num_outputs": 1000000000'})

    with pytest.raises(SavedModelError, match=r"a model of \d{10,} numbers or more"):
        model_from_bytes(hostile)
