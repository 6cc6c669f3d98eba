"""Data: tables read and checked, a standardiser for training rows, UCI splits, digits, toys."""

from gpflow_dwp.data._validation import check_matrix
from gpflow_dwp.data.cells import Cells, read_cells
from gpflow_dwp.data.embedded import load_diabetes, load_yacht
from gpflow_dwp.data.encoding import ColumnEncoder, ImputationStrategy
from gpflow_dwp.data.mnist import MNIST, load_mnist, read_idx
from gpflow_dwp.data.reading import (
    SplitTable,
    read_features,
    read_split_table,
    read_table,
    read_target,
)
from gpflow_dwp.data.standardiser import Standardiser
from gpflow_dwp.data.table import (
    Table,
    Task,
    as_pair,
    as_weighted,
    check_arrays,
    check_pair,
    check_weights,
    split_rows,
    split_table,
)
from gpflow_dwp.data.toy import step_function, varying_sine
from gpflow_dwp.data.uci import UCI_DATASETS, UCIDataset, UCISplit, load_uci

__all__ = [
    "MNIST",
    "UCI_DATASETS",
    "Cells",
    "ColumnEncoder",
    "ImputationStrategy",
    "SplitTable",
    "Standardiser",
    "Table",
    "Task",
    "UCIDataset",
    "UCISplit",
    "as_pair",
    "as_weighted",
    "check_arrays",
    "check_matrix",
    "check_pair",
    "check_weights",
    "load_diabetes",
    "load_mnist",
    "load_uci",
    "load_yacht",
    "read_cells",
    "read_features",
    "read_idx",
    "read_split_table",
    "read_table",
    "read_target",
    "split_rows",
    "split_table",
    "step_function",
    "varying_sine",
]
