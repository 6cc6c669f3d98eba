"""Deep Wishart processes for ScoringBench: a wrapper in its form, ready to be sent.

It goes into ``scoringbench/univariate/wrappers/deep_wishart_wrapper.py`` of
https://github.com/jonaslandsgesell/ScoringBench, and

- ``("DeepWishartWrapper", "deep_wishart_wrapper")`` into the list of optional wrappers beside it;
- ``"deep_wishart_v0_1": lambda: DeepWishartWrapper()`` into ``models.py``;
- ``gpflow-dwp[cli,sklearn]`` into ``requirements_models.txt``.
"""

from __future__ import annotations

import numpy as np
from scoringbench.univariate.wrappers.base import DistributionPrediction, ProbabilisticWrapper

_LEAST, _MOST = -1e7, 1e7
_ROWS_AT_ONCE = 500


class DeepWishartWrapper(ProbabilisticWrapper):
    """Deep Wishart processes (Ober and Aitchison, 2021; Ober et al., 2023) by gpflow_dwp.

    Depth, kernel, noise and warp are chosen by the variational bound on the training rows. The
    predictive distribution is a mixture, whose exact quantiles are given.

    :param num_quantiles: K, of equally spaced levels.
    :param random_state: Seed.
    :param settings: Further arguments of ``gpflow_dwp.estimator.DeepWishartRegressor``.
    """

    def __init__(self, num_quantiles: int = 199, random_state: int = 0, **settings: object) -> None:
        self._levels = np.arange(1, num_quantiles + 1) / (num_quantiles + 1)
        self._settings = {"random_state": random_state, **settings}

    def fit(self, X, y) -> DeepWishartWrapper:
        """Fit to the rows with a finite target: X [N, D], y [N]."""
        from gpflow_dwp.estimator import DeepWishartRegressor

        targets = np.asarray(y, dtype=np.float64).reshape(-1)
        known = np.isfinite(targets)
        self._set_train_range(targets[known])
        self._model = DeepWishartRegressor(**self._settings)
        self._model.fit(_finite(X)[known], targets[known])
        return self

    def predict(self, X) -> np.ndarray:
        """Return the means, [N]."""
        return self._model.predict(_finite(X))

    def predict_distribution(self, X) -> DistributionPrediction:
        """Return the predictive distributions by their quantiles."""
        inputs = _finite(X)
        blocks = np.array_split(inputs, max(1, -(-len(inputs) // _ROWS_AT_ONCE)))
        quantiles = [self._model.predict_quantiles(block, self._levels) for block in blocks]
        return DistributionPrediction.from_multi_quantile(
            np.concatenate(quantiles),
            self._levels,
            mean=self._model.predict(inputs),
            train_range=self._y_train_range,
        )


def _finite(X) -> np.ndarray:
    values = np.asarray(X, dtype=np.float64)
    return np.nan_to_num(values, nan=0.0, posinf=_MOST, neginf=_LEAST)
