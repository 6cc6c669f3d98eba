"""The wrapper for ScoringBench says what the estimator says, in the form that is asked for."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from package_source import ROOT

pytest.importorskip("sklearn")


class StandIn:
    """What ScoringBench's base class does in ``fit``, as of 2026."""

    def _set_train_range(self, y: np.ndarray) -> None:
        self._y_train_range = (float(y.min()), float(y.max()))


def test_quantiles_means_and_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without a target must go, more rows than a block come back in order."""
    base: Any = ModuleType("base")
    base.ProbabilisticWrapper = StandIn
    base.DistributionPrediction = SimpleNamespace(
        from_multi_quantile=lambda q, alphas, mean, *, train_range: (q, alphas, mean, train_range)
    )
    for name in ("scoringbench", "scoringbench.univariate", "scoringbench.univariate.wrappers"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "scoringbench.univariate.wrappers.base", base)
    spec = importlib.util.spec_from_file_location("wrapper", ROOT / "ci" / "scoring_bench.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 4)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(21, 2)), rng.normal(size=21)
    y[3] = np.nan

    wrapper = module.DeepWishartWrapper(9, depth=1, kernel="SquaredExponential").fit(X, y)
    quantiles, levels, mean, train_range = wrapper.predict_distribution(X)

    assert train_range == (np.nanmin(y), np.nanmax(y))
    np.testing.assert_allclose(levels, np.arange(1, 10) / 10)
    np.testing.assert_array_equal(mean, wrapper.predict(X))
    assert quantiles.shape == (21, 9) and np.all(np.diff(quantiles, axis=1) > 0.0)
    expected = wrapper._model.predict_quantiles(X, levels)
    np.testing.assert_allclose(quantiles, expected, rtol=1e-6)
