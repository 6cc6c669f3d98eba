"""The papers' UCI study: its cells, its results and their report."""

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
from gpflow_dwp.lab.study.published import published_scores
from gpflow_dwp.lab.study.report import markdown_table, write_report
from gpflow_dwp.lab.study.results import RESULTS, Record, append_record, read_results
from gpflow_dwp.lab.study.runner import run_cells
from gpflow_dwp.lab.study.tables import (
    calibration_table,
    density_table,
    model_ranks,
    paired_differences,
    runtime_table,
    score_table,
)

__all__ = [
    "RESULTS",
    "STUDY_MODELS",
    "STUDY_PROTOCOLS",
    "Cell",
    "Record",
    "append_record",
    "calibration_table",
    "configurations",
    "density_table",
    "make_cells",
    "markdown_table",
    "model_ranks",
    "paired_differences",
    "plot_coverage",
    "plot_densities",
    "plot_differences",
    "plot_runtimes",
    "plot_scores",
    "published_scores",
    "read_results",
    "read_results_table",
    "results_frame",
    "run_cell",
    "run_cells",
    "runtime_table",
    "score_table",
    "write_report",
]
