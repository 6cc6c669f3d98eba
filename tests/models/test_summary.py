"""What a model is made of, in a table that can be counted and read."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.utilities import parameter_dict
from model_reference import set_to_prior, tiny_model, toy_data

from gpflow_dwp.matrix_gaussian import build_matrix_gaussian_network
from gpflow_dwp.models import model_summary

DATA = toy_data()
OUTPUT = "GlobalInducingGPLayer", "SquaredExponential"
REGRESSION = {"output": "regression"}


def test_a_deep_wishart_process() -> None:
    model = tiny_model(2, posterior="A", width=3)

    summary = model_summary(model, kl=False)

    assert [part[:5] for part in summary.parts] == [
        ("inducing_variable", "InducingPoints", "", "points [5, 2]", ""),
        ("layers[0]", "WishartLayer", "SquaredExponential", "Gram matrix [5, 5], rank 3", "A-GW"),
        ("layers[1]", *OUTPUT, "functions [5, 1]", "Gaussian, global inducing"),
        ("likelihood", "Gaussian", "", "", ""),
    ]
    sizes = [p.unconstrained_variable.shape.num_elements() for p in parameter_dict(model).values()]
    assert sum(part.num_parameters for part in summary.parts) == sum(sizes)
    assert "KL" not in str(summary)


def test_divergences_are_those_of_the_bound_in_a_table() -> None:
    model = tiny_model(2, num_samples=500, posterior="GW")
    expected = -model.elbo_terms(DATA, seed=17).log_ratios.numpy()

    summary = model_summary(model)

    found = [part.kl for part in summary.parts if part.name.startswith("layers")]
    # Layers above the first have a ratio with heavy tails.
    np.testing.assert_allclose(found, expected, rtol=0.1)
    assert summary == model_summary(model)
    lines = str(summary).splitlines()
    assert lines[0] == "DeepWishartProcess: 2 inputs, 12 training data"
    assert lines[1].split()[-3:] == ["parameters", "KL", "(nats)"]
    assert len(lines) == 3 + 5
    assert lines[-1].split()[-1] == f"{sum(part.kl or 0.0 for part in summary.parts):,.2f}"


@pytest.mark.parametrize(
    ("arguments", "shape", "posterior"),
    [
        ({"whiten": True, "width": 9}, "Gram matrix [5, 5], rank 5", "AB-GW, whitened"),
        ({"build": "gaussian"}, "features [5, 2]", "Gaussian, global inducing"),
        ({"build": "inverse_wishart"}, "Gram matrix [5, 5]", "inverse Wishart"),
        ({"likelihood": gpflow.likelihoods.Softmax(3)}, "Gram matrix [5, 5], rank 2", "AB-GW"),
        ({"depth": 1, **REGRESSION}, "functions [5, 1]", "Gaussian, regression on 12 data"),
    ],
)
def test_other_layers_and_likelihoods(
    arguments: dict[str, Any], shape: str, posterior: str
) -> None:
    if "likelihood" in arguments:
        arguments = {**arguments, "data": (DATA[0], np.arange(12.0)[:, None] % 2)}
    summary = model_summary(tiny_model(**arguments), kl="likelihood" in arguments)

    layer = next(part for part in summary.parts if part.name == "layers[0]")
    assert (layer.shape, layer.posterior) == (shape, posterior)
    assert all(np.isfinite(part.kl) for part in summary.parts if part.kl is not None)


def test_layers_that_have_learned_nothing_are_named() -> None:
    """Catches the threshold of one kind of layer taken for the other's."""
    model = tiny_model(3)
    set_to_prior(model.layers[0])

    summary = model_summary(model)

    assert [part.name for part in summary.parts if part.collapsed] == ["layers[0]"]
    assert str(summary).endswith("\nlayers[0] has learned next to nothing")
    assert "layers[0] has learned next to nothing" in summary._repr_html_()
    assert model.collapsed_layers([0.5, 2.0, 2.9]) == [0, 2]
    assert build_matrix_gaussian_network(DATA).collapsed_layers([0.0, 0.0]) == []


def test_a_variable_of_a_users_kernel_is_counted() -> None:
    """Catches a table that wants every variable to be one of GPflow's."""
    model = tiny_model(1)
    before = model_summary(model, kl=False).parts[1].num_parameters
    model.layers[0].kernel.slope = tf.Variable([0.5, 0.5])
    assert model_summary(model, kl=False).parts[1].num_parameters == before + 2
