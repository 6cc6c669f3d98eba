"""Where the numbers of a run come from: command, machine, versions."""

from __future__ import annotations

import os
import platform
import sys
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from gpflow_dwp.cli.fit_options import FitOptions

__all__ = ["describe_run", "list_versions"]


def describe_run(options: FitOptions) -> dict[str, Any]:
    """Return what a run's ``metrics.json`` says about how it was made."""
    return {
        "command": ["gpflow-dwp", *sys.argv[1:]],
        "seed": options.seed,
        "dtype": np.dtype(gpflow.default_float()).name,
        "threads": _threads(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": list_versions(),
    }


def _threads() -> int:
    """How many TensorFlow may use: as it was told, in the program or before it, or all cores."""
    told = tf.config.threading.get_intra_op_parallelism_threads()
    before = os.environ.get("TF_NUM_INTRAOP_THREADS", "")
    if told or before.isdecimal():
        return told or int(before)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def list_versions() -> dict[str, str]:
    """Return the versions of this package and of those that numbers depend on."""
    modules = {"gpflow": gpflow, "tensorflow": tf, "tensorflow-probability": tfp, "numpy": np}
    # Of the modules: TensorFlow is also installed as tensorflow-cpu or tf-nightly.
    return {"gpflow-dwp": version("gpflow-dwp")} | {
        name: str(module.__version__) for name, module in modules.items()
    }
