"""The papers' UCI study: its cells, its results and their report."""

from gpflow_dwp.lab.study._job import thread_environment
from gpflow_dwp.lab.study._models import STUDY_MODELS
from gpflow_dwp.lab.study.cell import STUDY_PROTOCOLS, Cell
from gpflow_dwp.lab.study.execution import run_cell
from gpflow_dwp.lab.study.figures import (
    plot_coverage,
    plot_densities,
    plot_differences,
    plot_runtimes,
    plot_scores,
)
from gpflow_dwp.lab.study.frame import configurations, read_results_table, results_frame
from gpflow_dwp.lab.study.grid import make_cells
from gpflow_dwp.lab.study.provenance import describe_provenance, list_versions
from gpflow_dwp.lab.study.published import published_scores
from gpflow_dwp.lab.study.report import markdown_table, write_report
from gpflow_dwp.lab.study.results import (
    CELL_PLACE,
    COMPARISON_PLACE,
    RESULTS,
    Record,
    append_record,
    read_results,
)
from gpflow_dwp.lab.study.runnable import RunnableCell, check_each_once, check_split, sorted_pairs
from gpflow_dwp.lab.study.runner import run_cells
from gpflow_dwp.lab.study.scoring import prediction_scores, whole_data_bound
from gpflow_dwp.lab.study.tables import (
    calibration_table,
    density_table,
    model_ranks,
    paired_differences,
    runtime_table,
    score_table,
)

__all__ = [
    "CELL_PLACE",
    "COMPARISON_PLACE",
    "RESULTS",
    "STUDY_MODELS",
    "STUDY_PROTOCOLS",
    "Cell",
    "Record",
    "RunnableCell",
    "append_record",
    "calibration_table",
    "check_each_once",
    "check_split",
    "configurations",
    "density_table",
    "describe_provenance",
    "list_versions",
    "make_cells",
    "markdown_table",
    "model_ranks",
    "paired_differences",
    "plot_coverage",
    "plot_densities",
    "plot_differences",
    "plot_runtimes",
    "plot_scores",
    "prediction_scores",
    "published_scores",
    "read_results",
    "read_results_table",
    "results_frame",
    "run_cell",
    "run_cells",
    "runtime_table",
    "score_table",
    "sorted_pairs",
    "thread_environment",
    "whole_data_bound",
    "write_report",
]
