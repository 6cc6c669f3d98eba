"""What all layers with a kernel refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpflow_dwp.latent_variable_deep_gp import LocalInducingGPLayer
from gpflow_dwp.layers import (
    GlobalInducingGPLayer,
    GlobalInducingGramLayer,
    InverseWishartLayer,
    RegressionGPLayer,
    WishartLayer,
)

LAYERS: dict[str, Callable[[Any], Any]] = {
    "wishart": lambda kernel: WishartLayer(kernel, 2, 3),
    "inverse_wishart": lambda kernel: InverseWishartLayer(kernel, 3),
    "global_inducing_gram": lambda kernel: GlobalInducingGramLayer(kernel, 2, 3),
    "global_inducing": lambda kernel: GlobalInducingGPLayer(kernel, 1, num_inducing=3),
    "regression": lambda kernel: RegressionGPLayer(kernel, 3, np.ones((4, 2)), np.ones((4, 1))),
    "local_inducing": lambda kernel: LocalInducingGPLayer(kernel, np.ones((3, 2)), 1),
}


@pytest.mark.parametrize("name", LAYERS)
def test_what_is_no_kernel_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="kernel must be an instance of Kernel, got str"):
        LAYERS[name]("SquaredExponential")
