"""Types that the whole package shares: what flows between layers.

Letters (also in every shape comment and shape check of the package):

====  ===========================================================================
M     inducing points
N     data points of a batch ("targets")
S     joint draws of all layers' Gram matrices; a leading axis of length 1 stands
      for what is the same in all draws
R     rank of a sampled Gram matrix, ``min(df, M)``
D, Q  input columns, output columns
====  ===========================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.base import RegressionData, TensorData

__all__ = ["Array", "Seed", "TargetBlocks", "TrainingData"]

Array = npt.NDArray[np.float64]
"""A NumPy array in double precision."""

Seed = tf.Tensor
"""A stateless seed: an integer tensor of shape [2], as ``tf.random.stateless_*`` take it."""


TrainingData = RegressionData | tuple[TensorData, TensorData, TensorData]
"""X [N, D] and Y [N, P]; or three, with weights [N] that say how often each row counts."""


class TargetBlocks(NamedTuple):
    """The blocks of a covariance or Gram matrix that concern targets.

    The inducing block is drawn first, once for all targets, and travels on its own.

    :param it: Inducing by target, [S, M, N].
    :param tt: Target by target: its diagonal [S, N], or all of it [S, N, N] where joint draws
        over the targets are wanted (``full_cov``).
    :param features: Of a Gram matrix: F_t, [S, N, R], where ``it`` is F_i F_tᵀ. None if there are
        none.
    """

    it: tf.Tensor
    tt: tf.Tensor
    features: tf.Tensor | None = None
