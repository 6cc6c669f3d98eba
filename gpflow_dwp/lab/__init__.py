"""Measuring the package, and what others printed: experiments, studies, rivals and benchmarks.

The command line runs it. Nothing in it is part of the public interface.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["KEPT_RESULTS"]

KEPT_RESULTS = Path(__file__).resolve().parents[2] / "ci" / "results"
"""The folder of results under version control in the checkout, without which there is no lab."""
