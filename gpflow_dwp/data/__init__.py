"""Data: tables read and checked, a standardiser for training rows, UCI splits, digits, toys."""

from gpflow_dwp.data.embedded import load_diabetes
from gpflow_dwp.data.mnist import MNIST, load_mnist, read_idx
from gpflow_dwp.data.reading import read_features, read_table
from gpflow_dwp.data.standardiser import Standardiser
from gpflow_dwp.data.table import Table, Task, check_data, split_table
from gpflow_dwp.data.toy import step_function, varying_sine
from gpflow_dwp.data.uci import UCI_DATASETS, UCIDataset, UCISplit, load_uci

__all__ = [
    "MNIST",
    "UCI_DATASETS",
    "Standardiser",
    "Table",
    "Task",
    "UCIDataset",
    "UCISplit",
    "check_data",
    "load_diabetes",
    "load_mnist",
    "load_uci",
    "read_features",
    "read_idx",
    "read_table",
    "split_table",
    "step_function",
    "varying_sine",
]
