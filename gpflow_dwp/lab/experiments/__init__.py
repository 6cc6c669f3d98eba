"""Experiments, of other papers and with the depth of models."""

from __future__ import annotations

__all__ = []
