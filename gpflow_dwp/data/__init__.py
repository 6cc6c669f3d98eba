"""Data: named tables, a standardiser for training rows, examples."""

from gpflow_dwp.data.standardiser import Standardiser
from gpflow_dwp.data.table import Table, load_yacht, step_function, varying_sine

__all__ = ["Standardiser", "Table", "load_yacht", "step_function", "varying_sine"]
