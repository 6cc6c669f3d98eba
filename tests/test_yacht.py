"""The papers' protocol on yacht, split 0, at depth 2: minutes of training for each posterior."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.data import load_uci

LAST_STEPS = 1_000


@pytest.mark.slow
@pytest.mark.parametrize(("posterior", "wanted"), [("GW", 1.95), ("A", 2.05), ("AB", 2.05)])
def test_bound_per_datum(uci_folder: Path, posterior: str, wanted: float) -> None:
    data = load_uci("yacht", 0, folder=uci_folder).train
    model = build_deep_wishart_process(data, depth=2, posterior=posterior)

    start = time.perf_counter()
    history = fit(model, data, progress=False)

    bound = history.elbo_per_datum[-LAST_STEPS:].mean()
    print(f"{posterior}: {bound:.3f} per datum in {time.perf_counter() - start:.0f} s")
    assert bound >= wanted
