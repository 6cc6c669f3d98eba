"""Where results that are under version control lie."""

from __future__ import annotations

from pathlib import Path

__all__ = ["KEPT_RESULTS"]

KEPT_RESULTS = Path(__file__).resolve().parents[2] / "ci" / "results"
"""The folder of them in the checkout, without which there is no lab."""
