"""The defaults of deep Wishart processes beside what users have already, on real tables.

Every model is what its user gets without choosing anything, every split of a table is a cell in a
process of its own, and all are scored by the same formulas: ``gpflow-dwp compare``.
"""

from __future__ import annotations

__all__ = []
