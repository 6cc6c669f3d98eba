"""The defaults of deep Wishart processes beside what users have already, on real tables.

Every model is what its user gets without choosing anything, every split of a table is a cell in a
process of its own, and all are scored by the same formulas: ``gpflow-dwp compare``.
"""

from gpflow_dwp.lab.comparison.cell import ComparisonCell, make_comparison
from gpflow_dwp.lab.comparison.execution import run_comparison_cell
from gpflow_dwp.lab.comparison.figure import plot_relative_scores
from gpflow_dwp.lab.comparison.models import MODELS, ComparedModel, estimator_class
from gpflow_dwp.lab.comparison.predictions import EstimatorPrediction, NormalPrediction, Prediction
from gpflow_dwp.lab.comparison.report import comparison_markdown, write_comparison
from gpflow_dwp.lab.comparison.scores import (
    LEVELS,
    METRICS,
    classification_scores,
    quantile_crps,
    regression_scores,
)
from gpflow_dwp.lab.comparison.summary import comparison_frame, comparison_scores, tables_won
from gpflow_dwp.lab.comparison.tables import (
    TABLES,
    ComparisonTable,
    TableSplit,
    check_tables,
    load_split,
)

__all__ = [
    "LEVELS",
    "METRICS",
    "MODELS",
    "TABLES",
    "ComparedModel",
    "ComparisonCell",
    "ComparisonTable",
    "EstimatorPrediction",
    "NormalPrediction",
    "Prediction",
    "TableSplit",
    "check_tables",
    "classification_scores",
    "comparison_frame",
    "comparison_markdown",
    "comparison_scores",
    "estimator_class",
    "load_split",
    "make_comparison",
    "plot_relative_scores",
    "quantile_crps",
    "regression_scores",
    "run_comparison_cell",
    "tables_won",
    "write_comparison",
]
