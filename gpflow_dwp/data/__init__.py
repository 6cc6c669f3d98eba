"""Data: tables read and checked, a standardiser for training rows, examples."""

from gpflow_dwp.data.examples import load_yacht, step_function, varying_sine
from gpflow_dwp.data.standardiser import Standardiser
from gpflow_dwp.data.table import Table
from gpflow_dwp.data.tables import read_table

__all__ = [
    "Standardiser",
    "Table",
    "load_yacht",
    "read_table",
    "step_function",
    "varying_sine",
]
