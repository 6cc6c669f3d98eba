"""Arguments of layers that are refused by name."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest

from gpflow_dwp.layers import GlobalInducingGPLayer as PseudoTargets
from gpflow_dwp.layers import GlobalInducingGramLayer as Gram
from gpflow_dwp.layers import InverseWishartLayer, RegressionGPLayer, WishartLayer

LAYERS: dict[type[Any], dict[str, Any]] = {
    WishartLayer: {"df": 2, "num_inducing": 3},
    InverseWishartLayer: {"num_inducing": 3},
    Gram: {"width": 2, "num_inducing": 3},
    PseudoTargets: {"num_outputs": 2, "pseudo_targets": np.zeros((4, 2))},
    RegressionGPLayer: {"num_inducing": 4, "inputs": np.zeros((6, 3)), "targets": np.zeros((6, 2))},
}
REFUSED: list[tuple[type[Any], dict[str, Any], str]] = [
    *(
        (layer, {"kernel": "RBF"}, "kernel must be an instance of Kernel, got str")
        for layer in LAYERS
    ),
    *(
        (layer, {"num_inducing": size}, f"num_inducing must be {wanted}")
        for layer in LAYERS
        if layer is not PseudoTargets
        for size, wanted in ((0, "a positive integer, got 0"), (10**15, "smaller, got 10{15}"))
    ),
    (WishartLayer, {"df": 0}, "df must be a positive integer, got 0"),
    (WishartLayer, {"posterior": "B"}, "posterior must be one of GW, A, AB, got 'B'"),
    (WishartLayer, {"jitter": -1e-6}, "jitter must be a number of at least 0, got -1e-06"),
    (InverseWishartLayer, {"df": 0.0}, "df must be a positive number, got 0.0"),
    (InverseWishartLayer, {"expected_log_ratio": "no"}, "expected_log_ratio must be True or False"),
    (Gram, {"pseudo_targets": np.zeros(3)}, r"shape \[3, 2\], got \[3\]"),
    (Gram, {"pseudo_targets": np.full((3, 2), np.nan)}, "pseudo_targets holds nan in row 1"),
    *(
        (Gram, {"feature_scales": s}, "feature_scales must be 2 positive num")
        for s in ([1.0], [1.0, 0.0], [[1.0], 2.0])
    ),
    (PseudoTargets, {"pseudo_targets": np.zeros(4)}, r"two axes, .* shape \[4\]"),
    (PseudoTargets, {"pseudo_targets": np.zeros((4, 3))}, r"\[num_inducing, 2\], got \[4"),
    (
        PseudoTargets,
        {"kernel": gpflow.kernels.LinearCoregionalization([gpflow.kernels.RBF()], np.ones((3, 1)))},
        "kernel must have a W of 2 rows, got 3",
    ),
    (PseudoTargets, {"pseudo_targets": 1j * np.ones((4, 2))}, "pseudo_targets must .* complex128"),
    (PseudoTargets, {"precision": 0.0}, "precision must be a positive number, got 0.0"),
    (RegressionGPLayer, {"inputs": np.zeros(6)}, r"inputs must have two axes, .* shape \[6\]"),
    (RegressionGPLayer, {"targets": np.zeros((5, 2))}, r"got shapes \[6, 3\] and \[5, 2\]"),
    (RegressionGPLayer, {"precisions": np.zeros(6)}, "precisions must be 6 positive numbers"),
    (RegressionGPLayer, {"noise_variance": 0.0}, "noise_variance must be a positive number"),
]


@pytest.mark.parametrize(("layer", "changes", "message"), REFUSED)
def test_what_is_refused(layer: type[Any], changes: dict[str, Any], message: str) -> None:
    arguments = {"kernel": gpflow.kernels.Linear(), **LAYERS[layer], **changes}
    with pytest.raises(ValueError, match=message):
        layer(**arguments)
