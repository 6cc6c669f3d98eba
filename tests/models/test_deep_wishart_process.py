"""The bound of a deep Wishart process: a second implementation, and its estimators."""

from __future__ import annotations

from typing import Any

import gpflow
import model_reference
import pytest
from model_reference import tiny_model, toy_data

DATA = toy_data()


@pytest.mark.parametrize(
    ("depth", "arguments"),
    [
        (1, {}),
        (2, {"posterior": "GW"}),
        (2, {"posterior": "A", "whiten": True}),
        (2, {"posterior": "AB", "width": 7}),
        (3, {"posterior": "AB", "data": toy_data(num_outputs=2)}),
    ],
)
def test_bound_is_that_of_dense_numpy_loops(depth: int, arguments: dict[str, Any]) -> None:
    data = arguments.get("data", DATA)
    model = tiny_model(depth, expected_log_ratio=False, **arguments)

    model_reference.assert_bound_is_that_of_dense_loops(model, data)


def test_parameter_paths_are_stable() -> None:
    model = tiny_model(2)

    assert set(gpflow.utilities.parameter_dict(model)) == {
        ".layers[0].kernel.variance",
        ".layers[0].kernel.lengthscales",
        ".layers[0].bartlett_factor.concentration",
        ".layers[0].bartlett_factor.rate",
        ".layers[0].bartlett_factor.loc",
        ".layers[0].bartlett_factor.scale",
        ".layers[0].bartlett_factor.packed_row_mixing",
        ".layers[0].bartlett_factor.column_mixing_tril",
        ".layers[0].scale_mixture.root",
        ".layers[0].scale_mixture.root_scale",
        ".layers[0].scale_mixture.proportion",
        ".layers[1].kernel.variance",
        ".layers[1].kernel.lengthscales",
        ".layers[1].pseudo_targets",
        ".layers[1].precision_tril",
        ".likelihood.variance",
        ".inducing_variable.Z",
    }
