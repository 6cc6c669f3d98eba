"""Other libraries' deep GPs, without those libraries where they are missing."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from gpflow_dwp.lab.benchmarks import _peers


def test_data_are_standardised_and_always_the_same() -> None:
    X, Y = _peers.regression_data(200, 3)

    assert X.shape == (200, 3) and Y.shape == (200, 1)
    np.testing.assert_allclose([Y.mean(), Y.std()], [0.0, 1.0], atol=1e-12)
    np.testing.assert_array_equal(X, _peers.regression_data(200, 3)[0])


@pytest.mark.parametrize("peer", ["gpflow", "gpflux", "gpytorch"])
def test_a_peer_takes_steps(peer: str) -> None:
    try:
        importlib.import_module(peer)
    except ImportError:
        pytest.skip(f"needs {peer}")

    getattr(_peers, f"prepare_{peer}")([12, 2, 4, 2, 2], "float64")(2)
