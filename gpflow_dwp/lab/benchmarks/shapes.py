"""What is measured: models by name, and the sizes of a training step."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

__all__ = [
    "SHAPES",
    "STEP_MODELS",
    "WISHART_MODELS",
    "DatasetName",
    "DtypeName",
    "ModelName",
    "Shape",
    "ShapeName",
    "WishartName",
    "posterior_arguments",
]

DatasetName = Literal[
    "boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht"
]
DtypeName = Literal["float64", "float32"]
ShapeName = Literal["yacht-2", "yacht-5", "protein-5", "large-3", "larger-3", "largest-3"]
WishartName = Literal["GW", "A", "AB", "A-whitened"]
ModelName = Literal[WishartName, "DGP"]

WISHART_MODELS: tuple[WishartName, ...] = get_args(WishartName)
"""Deep Wishart processes by posterior family."""

STEP_MODELS: tuple[ModelName, ...] = get_args(ModelName)
"""These, and the deep GP with the same prior."""


class Shape(NamedTuple):
    """Sizes of one training step.

    :param num_data: N, rows of the batch.
    :param num_inputs: D, which is also the layers' ν.
    :param num_inducing: Number of inducing points, M.
    :param num_samples: Number of joint draws, S.
    :param depth: Number of GP layers of the equivalent deep GP.
    """

    num_data: int
    num_inputs: int
    num_inducing: int
    num_samples: int
    depth: int


SHAPES: dict[str, Shape] = {
    "yacht-2": Shape(277, 6, 100, 10, 2),
    "yacht-5": Shape(277, 6, 100, 10, 5),
    "protein-5": Shape(1_000, 9, 100, 10, 5),
    "large-3": Shape(1_000, 9, 500, 10, 3),
    "larger-3": Shape(2_000, 9, 1_000, 2, 3),
    "largest-3": Shape(4_000, 9, 2_000, 2, 3),
}
"""Those of yacht's training rows at two depths, of a batch of protein's, and of large models."""


def posterior_arguments(model: str) -> dict[str, Any]:
    """Return the builder's arguments that make one of :data:`WISHART_MODELS`."""
    family, _, whitened = model.partition("-")
    return {"posterior": family, "whiten": bool(whitened)}
