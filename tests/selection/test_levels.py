"""Categories whose levels are points in a plane."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gpflow_dwp.estimator import DeepWishartRegressor
from gpflow_dwp.kernels import LevelsMatern52
from gpflow_dwp.selection.levels import categories_of

pytestmark = pytest.mark.usefixtures("plain_single_layers")

PHASES = np.array([0.0, 3.0, 0.1, 1.6, 1.5, 3.1])


def runs(count: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Waves of which levels come in pairs."""
    rng = np.random.default_rng(seed)
    x, level = rng.uniform(size=(count, 2)), np.arange(count) % 6
    y = np.sin(4.0 * x[:, 0] + PHASES[level]) + x[:, 1] ** 2 * np.cos(PHASES[level])
    return pd.DataFrame({"a": x[:, 0], "kind": np.array([*"uvwxyz"])[level], "b": x[:, 1]}), y


def test_only_one_of_several_indicators_in_each_row_is_a_category() -> None:
    """Catches flags beside a category, and two levels, that are taken for one."""
    levels = np.eye(4)[[0, 1, 2, 3, 0, 2]]
    flags = np.array([[0, 1], [1, 1], [1, 0], [0, 0], [1, 1], [0, 1]])
    assert categories_of(np.hstack([flags, levels, flags])) == (0, 0, 1, 1, 1, 1, 0, 0)
    assert categories_of(np.hstack([levels, 2.0 * levels - 0.3])) == (1, 1, 1, 1, 2, 2, 2, 2)
    assert not any(categories_of(np.hstack([levels[:, :3], flags])))


def test_levels_that_are_alike_share_what_runs_tell() -> None:
    """Catches a kernel that is not tried, is lost by ``tell``, or knows levels by another order."""
    (X, y), (T, t) = runs(48, 0), runs(300, 1)
    errors = {}
    for kernel in ("auto", "Matern52"):
        given = {"likelihood": "noise_free", "effort": "quick", "kernel": kernel}
        emulator = DeepWishartRegressor(**given, random_state=0).fit(X, y)
        errors[kernel] = np.sqrt(np.mean((emulator.predict(T) - t) ** 2))
        if kernel == "auto":
            emulator.tell(*runs(1, 2))
            found = emulator.model_.output_layer.kernel
    assert isinstance(found, LevelsMatern52)
    assert [*found.categories] == [0, 1, 1, 1, 1, 1, 1, 0]
    assert errors["auto"] < 0.8 * errors["Matern52"]
