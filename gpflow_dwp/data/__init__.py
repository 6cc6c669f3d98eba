"""Data: tables read and checked, a standardiser fitted on training rows, toy functions."""

from gpflow_dwp.data.embedded import load_diabetes
from gpflow_dwp.data.reading import read_features, read_table
from gpflow_dwp.data.standardiser import Standardiser
from gpflow_dwp.data.table import Table, Task, check_data, split_table
from gpflow_dwp.data.toy import step_function, varying_sine

__all__ = [
    "Standardiser",
    "Table",
    "Task",
    "check_data",
    "load_diabetes",
    "read_features",
    "read_table",
    "split_table",
    "step_function",
    "varying_sine",
]
