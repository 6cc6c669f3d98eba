"""Bars are for who can see them, and say what tables say."""

from __future__ import annotations

import sys

import pytest
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit
from gpflow_dwp.training import progress


def test_a_bar_is_shown_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch bars in a log file, and a bound in other units than those of a table."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # of other tests
    fit(tiny_model(1), toy_data(), 2)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress.bounds_in_raw_units(1000.0):
        history = fit(tiny_model(1), toy_data(), 1)
        assert f"ELBO per datum {history.elbo_per_datum[0] + 1000.0:.3f}" in capsys.readouterr().err
    assert progress.shown_bound(1.0) == "ELBO per datum 1.000"
