"""Data: tables read and checked, a standardiser for training rows, UCI splits, toys."""

from gpflow_dwp.data.examples import load_diabetes, load_yacht, step_function, varying_sine
from gpflow_dwp.data.standardiser import Standardiser
from gpflow_dwp.data.table import Table
from gpflow_dwp.data.tables import read_table
from gpflow_dwp.data.uci import UCI_DATASETS, UCISplit, load_uci

__all__ = [
    "UCI_DATASETS",
    "Standardiser",
    "Table",
    "UCISplit",
    "load_diabetes",
    "load_uci",
    "load_yacht",
    "read_table",
    "step_function",
    "varying_sine",
]
