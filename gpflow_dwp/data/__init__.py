"""Data: named tables, a standardiser for training rows, examples."""

from gpflow_dwp.data.examples import load_yacht, step_function, varying_sine
from gpflow_dwp.data.standardiser import Standardiser
from gpflow_dwp.data.table import Table

__all__ = [
    "Standardiser",
    "Table",
    "load_yacht",
    "step_function",
    "varying_sine",
]
