"""Models that start where a shallower one has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.utilities import parameter_dict
from model_reference import randomise

from gpflow_dwp.models import (
    DeepKernelProcess,
    build_deep_gaussian_process,
    build_deep_inverse_wishart_process,
    build_deep_wishart_process,
)
from gpflow_dwp.selection.deepening import start_at

X = np.random.default_rng(0).standard_normal((12, 2))
DATA = X, np.sin(2.0 * X[:, :1])


@pytest.mark.parametrize(
    ("build", "depth", "settings"),
    [
        (build_deep_wishart_process, 1, {"output": "regression", "likelihood": "student_t"}),
        (build_deep_wishart_process, 2, {"output": "pseudo_targets"}),
        (build_deep_gaussian_process, 1, {"mean_function": gpflow.functions.Constant()}),
        (build_deep_gaussian_process, 2, {"hidden_ard": True}),
        (build_deep_inverse_wishart_process, 2, {"kernel": "Matern52"}),
    ],
)
def test_all_but_the_new_layer_is_taken_over(
    build: Callable[..., DeepKernelProcess], depth: int, settings: dict[str, Any]
) -> None:
    """Catches parts that are forgotten, or taken from the layer beside."""
    shallower = build(DATA, depth, num_inducing=6, seed=1, **settings)
    randomise(shallower, seed=0, scale=0.1)
    model = build(DATA, depth + 1, num_inducing=6, **settings)
    new = {path: value.numpy() for path, value in parameter_dict(model).items()}
    start_at(model, shallower)
    values, old = parameter_dict(model), parameter_dict(shallower)
    added, output = model.layers[depth - 1 : depth + 1]
    lengthscales = old[f".layers[{depth - 1}].kernel.lengthscales"]
    unit = 1.0 if depth == 1 else lengthscales  # The kernel on the inputs stays there.
    np.testing.assert_allclose(added.kernel.lengthscales, 3.0 * lengthscales)
    np.testing.assert_allclose(added.kernel.variance, 9.0 * np.square(unit))
    np.testing.assert_allclose(output.kernel.lengthscales, unit)
    for path, value in values.items():
        if path.startswith(f".layers[{depth - 1}]"):
            if path.endswith(".feature_scales"):  # On average it hands on what it gets.
                np.testing.assert_allclose(value, np.sqrt(0.5) * np.ones(2))
            elif ".kernel" not in path:
                np.testing.assert_array_equal(value, new[path])
        elif not path.endswith("kernel.lengthscales") or depth > 1:
            before = path.replace(f".layers[{depth}]", f".layers[{depth - 1}]")
            np.testing.assert_array_equal(value, old[before], err_msg=path)
    assert np.isfinite(model.elbo(DATA))


def test_data_of_a_regression_are_its_own() -> None:
    """Catches a model that would regress on another one's rows."""
    others = X + 1.0, DATA[1]
    shallower = build_deep_wishart_process(others, 2, num_inducing=6, output="regression")
    model = build_deep_wishart_process(DATA, 3, num_inducing=6, output="regression")
    start_at(model, shallower)
    np.testing.assert_array_equal(model.rows[0], X)
