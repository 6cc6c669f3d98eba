"""Bars are for who can see them."""

from __future__ import annotations

import sys

import pytest
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit


def test_a_bar_is_shown_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch bars in a log file, and one that does not say that it compiles."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # of other tests
    fit(tiny_model(1), toy_data(), 2)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    history = fit(tiny_model(1), toy_data(), 1)
    shown = capsys.readouterr().err
    assert "compiling" in shown and f"ELBO per datum {history.elbo_per_datum[0]:.3f}" in shown
