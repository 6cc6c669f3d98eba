"""The sizes at which a training step is timed."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SHAPES", "Shape"]


class Shape(NamedTuple):
    """Sizes of one training step.

    :param num_data: N, rows of the batch.
    :param num_inputs: D, which is also the layers' ν.
    :param num_inducing: M.
    :param num_samples: S.
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
}
"""Those of yacht's training rows at two depths, of a batch of protein's, and of a large model."""
