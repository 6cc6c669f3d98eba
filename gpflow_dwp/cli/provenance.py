"""Where the numbers of a run come from: command, seed, software and machine."""

from __future__ import annotations

import os
import sys
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from gpflow_dwp.cli.fit_options import FitOptions
from gpflow_dwp.evaluation.provenance import describe_provenance, list_versions

__all__ = ["fit_provenance", "list_versions"]


def fit_provenance(options: FitOptions) -> dict[str, Any]:
    """Return what a run's ``metrics.json`` says about how it was made."""
    own = {"command": ["gpflow-dwp", *sys.argv[1:]], "seed": options.seed}
    return own | describe_provenance(np.dtype(gpflow.default_float()).name, _threads())


def _threads() -> int:
    """How many TensorFlow may use: as it was told, in the program or before it, or all cores."""
    told = tf.config.threading.get_intra_op_parallelism_threads()
    before = os.environ.get("TF_NUM_INTRAOP_THREADS", "")
    if told or before.isdecimal():
        return told or int(before)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
