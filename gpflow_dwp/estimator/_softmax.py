"""Expected class probabilities under a mixture of normals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from gpflow_dwp.models import DeepPosterior

__all__ = ["mean_softmax"]

Array = npt.NDArray[np.float64]

# Pairs of opposite normal draws for each component of the mixture.
_PAIRS = 16
_MAX_NUMBERS = 2**22


def mean_softmax(posterior: DeepPosterior, X: Array, num_classes: int, *, seed: int) -> Array:
    """Estimate E softmax(f(x)), with f given by its mixture of normals.

    A likelihood's own estimate draws anew at every call, and other numbers for a point in another
    batch. Here all points share one set of draws, opposite ones in pairs: a prediction depends on
    the point alone, and changes smoothly with it.

    :param posterior: Draws of all layers of a model with C latent functions.
    :param X: Inputs, [N, D].
    :param num_classes: C.
    :param seed: For the draws.
    :return: Probabilities, [N, C].
    """
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((posterior.num_samples, _PAIRS, 1, num_classes))
    noise = np.concatenate([half, -half], axis=1)
    rows = max(1, _MAX_NUMBERS // noise.size)
    probabilities = []
    for start in range(0, len(X), rows):
        moments = posterior.predict_f_components(X[start : start + rows])
        mean, deviation = moments[0].numpy()[:, None], np.sqrt(moments[1].numpy())[:, None]
        probabilities.append(softmax(mean + deviation * noise, axis=-1).mean(axis=(0, 1)))
    return np.concatenate(probabilities)
