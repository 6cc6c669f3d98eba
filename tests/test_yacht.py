"""The papers' protocol on yacht, split 0, at depth 2: minutes of training for each posterior."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.data import Standardiser

LAST_STEPS = 1_000


def load_split(folder: Path, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised training rows of a split."""
    data = folder / "data"
    table = np.loadtxt(data / "data.txt")
    features = np.loadtxt(data / "index_features.txt", dtype=int)
    target = np.loadtxt(data / "index_target.txt", dtype=int, ndmin=1)
    rows = np.loadtxt(data / f"index_train_{split}.txt", dtype=int)
    X, Y = table[rows][:, features], table[rows][:, target]
    return Standardiser.fit(X).transform(X), Standardiser.fit(Y).transform(Y)


@pytest.mark.slow
@pytest.mark.parametrize(("posterior", "wanted"), [("GW", 1.95), ("A", 2.05), ("AB", 2.05)])
def test_bound_per_datum(uci_folder: Path, posterior: str, wanted: float) -> None:
    data = load_split(uci_folder / "yacht", 0)
    model = build_deep_wishart_process(data, depth=2, posterior=posterior)

    start = time.perf_counter()
    history = fit(model, data, progress=False)

    bound = history.elbo_per_datum[-LAST_STEPS:].mean()
    print(f"{posterior}: {bound:.3f} per datum in {time.perf_counter() - start:.0f} s")
    assert bound >= wanted
