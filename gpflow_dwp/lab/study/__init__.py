"""The papers' UCI study: its cells, its results and their report."""

from __future__ import annotations

__all__ = []
