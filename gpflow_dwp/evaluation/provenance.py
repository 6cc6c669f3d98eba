"""Where a result comes from: versions, commit and machine."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import tensorflow as tf

from gpflow_dwp.optional import list_versions

__all__ = ["describe_provenance"]


def describe_provenance(dtype: str, threads: int | None = None) -> dict[str, Any]:
    """Describe software and machine as they are now, in plain values for JSON.

    :return: versions of packages, commit (None outside a repository; "-dirty" at its end says that
        files were changed since), the computation's dtype and threads, machine (with the GPUs that
        TensorFlow sees) and date (UTC).
    """
    system = f"{platform.system()} {platform.machine()}"
    details = map(tf.config.experimental.get_device_details, tf.config.get_visible_devices("GPU"))
    gpus = [each.get("device_name", "GPU") for each in details]
    return {
        "versions": list_versions(),
        "commit": _commit(),
        "dtype": dtype,
        "threads": threads or tf.config.threading.get_intra_op_parallelism_threads() or "all",
        "machine": ", ".join([_processor(), f"{os.cpu_count()} cores", system, *gpus]),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def _commit() -> str | None:
    # Without optional locks: other processes may be at work in the repository.
    git = ["git", "--no-optional-locks", "-C", str(Path(__file__).resolve().parent)]
    describe = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        # The package may lie in someone else's repository, which does not track it.
        for arguments in (["ls-files", "--error-unmatch", "../__init__.py"], describe):
            done = subprocess.run(
                [*git, *arguments], capture_output=True, text=True, check=True, timeout=30
            )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
