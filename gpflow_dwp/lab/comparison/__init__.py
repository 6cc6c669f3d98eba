"""The defaults of deep Wishart processes beside what users have already, on real tables.

Every model is what its user gets without choosing anything, every split of a table is a cell in a
process of its own, and all are scored by the same formulas: ``gpflow-dwp compare``.
"""

from gpflow_dwp.lab.comparison.cell import ComparisonCell, make_comparison, run_comparison_cell
from gpflow_dwp.lab.comparison.models import COMPARED_MODELS
from gpflow_dwp.lab.comparison.report import write_comparison
from gpflow_dwp.lab.comparison.scores import METRICS
from gpflow_dwp.lab.comparison.tables import TABLES, check_tables

__all__ = [
    "COMPARED_MODELS",
    "METRICS",
    "TABLES",
    "ComparisonCell",
    "check_tables",
    "make_comparison",
    "run_comparison_cell",
    "write_comparison",
]
