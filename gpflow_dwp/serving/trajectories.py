"""Functions drawn from a model, as Bayesian-optimisation libraries ask for them."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.utilities import to_default_float

from gpflow_dwp.autograph import without_autograph

__all__ = ["DrawFunctions", "Trajectory", "TrajectorySampler"]

DrawFunctions = Callable[[int], Callable[[tf.Tensor], tf.Tensor]]
"""Given B, draws B functions, from [B, N, D] to [B, N, E]."""


class TrajectorySampler:
    """Draws functions that give the same value at a point whenever they are asked.

    A trajectory takes [N, B, D] and returns [N, B, E]: B functions, each at N points of its own. B
    is that of the first call.

    :param draw: Draws functions of the present model.
    """

    def __init__(self, draw: DrawFunctions) -> None:
        self._draw = draw

    def get_trajectory(self) -> Trajectory:
        """Draw new functions of the present model."""
        return Trajectory(self._draw)

    def resample_trajectory(self, trajectory: Trajectory) -> Trajectory:
        """Draw other functions.

        :param trajectory: What :meth:`get_trajectory` returned; it stays as it is.
        """
        return self.get_trajectory()

    def update_trajectory(self, trajectory: Trajectory) -> Trajectory:
        """Draw functions of the model after its update.

        :param trajectory: What :meth:`get_trajectory` returned; it stays as it is.
        """
        return self.get_trajectory()


class Trajectory:
    """B functions of a model: see :class:`TrajectorySampler`.

    :param draw: As for :class:`TrajectorySampler`; it is called at the first call.
    """

    def __init__(self, draw: DrawFunctions) -> None:
        self._draw = draw
        self._functions: Callable[[tf.Tensor], tf.Tensor] | None = None
        self._num_functions = 0

    @without_autograph
    def __call__(self, x: TensorType) -> tf.Tensor:
        """Evaluate the functions.

        :param x: Points, [N, B, D].
        :return: [N, B, E].
        :raises ValueError: If B is not that of the first call.
        """
        points = to_default_float(x)
        if points.shape.rank != 3 or points.shape[1] is None:
            raise ValueError(f"x must have shape [N, B, D] with known B, got {points.shape}.")
        if self._functions is None:
            self._num_functions = points.shape[1]
            with tf.init_scope():  # also where the first call is compiled
                self._functions = self._draw(self._num_functions)
        if points.shape[1] != self._num_functions:
            raise ValueError(
                f"x must have shape [N, {self._num_functions}, D], as in the first call, got "
                f"{points.shape}."
            )
        return tf.transpose(self._functions(tf.transpose(points, [1, 0, 2])), [1, 0, 2])
